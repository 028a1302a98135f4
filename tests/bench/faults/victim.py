"""The program that kill_points.py kills: a training run that dies at the n-th call of a named function."""

import json
import os
import signal
import time
from pathlib import Path

EPOCHS, EVERY = 60, 2

# (name, module, attribute, most calls before it) of what a rank does; "half" kills in the middle of a write.
POINTS = (
    ("start of a broadcast", "distgnn.comm.exchange", "Exchange.start_broadcast", 60),
    ("end of a broadcast", "distgnn.comm.exchange", "Exchange.finish_broadcast", 60),
    ("start of a reduce", "distgnn.comm.exchange", "Exchange.start_reduce", 60),
    ("end of a reduce", "distgnn.comm.exchange", "Exchange.finish_reduce", 60),
    ("sum of gradients", "distgnn.train.gradients", "GradientBuffer.sum", 12),
    ("optimiser", "distgnn.train.steps.own_optimizers", "Adam.step", 12),
    ("numbers of an epoch", "distgnn.train.trainer", "over_ranks", 12),
    ("evaluation", "distgnn.train.trainer", "evaluate", 4),
    ("line of metrics.jsonl, half", "distgnn.train.run.run_folder", "RunFolder.add_epoch", 12),
    ("best weights, half", "distgnn.train.trainer", "replace_file", 6),
    ("beginning of a checkpoint", "distgnn.train.checkpoint.files", "begin", 5),
    ("file of a checkpoint, half", "distgnn.train.checkpoint.files", "write_file", 20),
    ("commit of a checkpoint", "distgnn.train.checkpoint.files", "commit", 5),
    ("fsync", "os", "fsync", 50),
    ("rename", "pathlib", "Path.rename", 10),
    ("removal of an old checkpoint", "shutil", "rmtree", 10),
    ("resuming", "distgnn.train.trainer", "load_checkpoint", 1),
    ("metrics cut back on resuming", "distgnn.train.run.run_folder", "RunFolder.keep_epochs", 1),
)
ONLY_RANK_0 = {"best weights, half", "line of metrics.jsonl, half", "metrics cut back on resuming", "rename"}
ONLY_RANK_0 |= {"beginning of a checkpoint", "file of a checkpoint, half", "commit of a checkpoint", "fsync"}
ONLY_RANK_0 |= {"removal of an old checkpoint"}


def victim(work: Path, run: Path, aim: dict | None) -> None:
    """One rank: train from the newest checkpoint on, and die where `aim` says."""
    import torch

    import distgnn as dg
    from distgnn.graph.loader import load
    from distgnn.train.checkpoint import files

    graph = load(str(work / "parts"), dtype="float32")
    torch.manual_seed(0)
    model = dg.nn.GraphSAGE(graph.num_feats, 8, graph.num_classes, 2)
    commit = files.commit

    def commit_and_tell(folder, partial, epochs_done, state):
        path = commit(folder, partial, epochs_done, state)
        (work / "committed").write_text(str(epochs_done))
        return path

    files.commit = commit_and_tell
    config = dg.TrainConfig(epochs=EPOCHS, eval_every=4, run_dir=str(run), checkpoint_every=EVERY, resume=True)
    config.lr_schedule = "plateau"
    if aim and aim["rank"] == graph.rank:
        _arm(work, aim)
    dg.Trainer(model, graph, config, say=lambda text: None).fit()


def _arm(work: Path, aim: dict) -> None:
    """Replace the aimed function by one that kills this process at its n-th call, before or after it."""
    _, module, attribute, _ = POINTS[aim["point"]]
    holder = __import__(module, fromlist=["x"])
    *outer, name = attribute.split(".")
    for part in outer:
        holder = getattr(holder, part)
    original, left = getattr(holder, name), aim["calls"]

    def die() -> None:
        (work / "died").write_text(repr(time.time()))
        os.kill(os.getpid(), signal.SIGKILL)

    def deadly(*args, **kwargs):
        nonlocal left
        left -= 1
        if left == 0 and aim["half"] is not None:
            _half(name, args, aim["half"])
        if left == 0 and not aim["after"]:
            die()
        result = original(*args, **kwargs)
        if left == 0:
            die()
        return result

    setattr(holder, name, deadly)


def _half(name: str, args: tuple, share: float) -> None:
    """Write a part of what the call would write, as a crash in the middle of it leaves it."""
    if name == "write_file":
        folder, file, content = args
        (folder / f"{file}.safetensors").write_bytes(content[: int(share * len(content))])
    elif name == "add_epoch":
        folder, record = args
        text = json.dumps(record)
        folder._metrics.write(text[: int(share * len(text))])
        folder._metrics.flush()
    elif name == "replace_file":
        path, content = args
        path.with_name(path.name + ".partial").write_bytes(content[: int(share * len(content))])


def prepare() -> None:
    """Import everything a victim needs, without beginning MPI; kernels and their threads begin in the child."""
    os.environ["DISTGNN_NUM_THREADS"] = "1"
    import mpi4py

    mpi4py.rc.initialize = False
    mpi4py.rc.finalize = False
    import distgnn.graph.loader
    import distgnn.nn
    import distgnn.train.trainer  # noqa: F401
