"""Power cuts while a training run, or a cut, is written: at every instant, with what was not synced dropped at random.

    python tests/bench/faults/power_cut.py WORK [--each 4] [--resume-every 200]

Everything that one process writes is recorded (recorder.py) and replayed: after each operation with all,
none and some of the names and contents that were not synced. In each state

- of a run: the newest checkpoint reads whole, it is not older than the last one that was said to be written, and the
  run folder knows its epochs; now and then training goes on from there, to the losses of a run that nothing disturbed;
- of a partition folder: there is none or a whole one, and one beside it stays whole.

Exit code 1 where anything of this is not so.
"""

import argparse
import collections
import json
import random
import shutil
import sys
from pathlib import Path

import numpy as np

from distgnn.datasets import GraphData
from distgnn.partition.folder.manifest_file import read_manifest
from distgnn.partition.folder.reader import load_part

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from recorder import Recorder, write_tree

EPOCHS, EVERY = 8, 2


def train(parts: Path, run: Path, epochs: int, resume: bool = False) -> None:
    import torch

    import distgnn as dg

    graph = dg.load(str(parts), dtype="float64", say=None)
    torch.manual_seed(0)
    model = dg.nn.GraphSAGE(graph.num_feats, 4, graph.num_classes, 2)
    config = dg.TrainConfig(epochs=epochs, eval_every=2, run_dir=str(run), checkpoint_every=EVERY, resume=resume)
    dg.Trainer(model, graph, config, say=lambda text: None).fit()


def rename_as_recorded(one: Path, other: Path, how: int) -> bool | None:
    """In place of renameat2, which the recorder does not see: the same where nobody else writes."""
    from distgnn.system.atomic import RENAME_NOREPLACE

    if how != RENAME_NOREPLACE:
        return None
    if other.exists():
        return False
    one.rename(other)
    return True


def losses(run: Path) -> list[float]:
    return [json.loads(line)["loss"] for line in (run / "metrics.jsonl").read_text().splitlines()]


def check_run(run: Path, at_least: int) -> int:
    """Epochs of the newest checkpoint, which reads whole. Raises: AssertionError or RunError."""
    from distgnn.train.checkpoint import files
    from distgnn.train.run.run_folder import read_config, read_metrics

    found = files.find_checkpoints(run)
    newest = files.epochs_of(found[0]) if found else 0
    assert newest >= at_least, f"a checkpoint is lost: {newest} epochs, {at_least} had been written"
    if found:
        state = files.read_state(found[0])
        for name in state["files"]:
            assert files.read_file(found[0], state, name) is not None
        read_config(str(run))
        known = len(read_metrics(run / "metrics.jsonl"))
        assert known >= newest, f"metrics.jsonl knows {known} epochs, the checkpoint {newest}"
    return newest


def of_runs(args: argparse.Namespace, say) -> None:
    from distgnn.train.checkpoint import files

    base, parts = args.work / "run", args.work / "parts"
    base.mkdir()
    done: list[tuple[int, int]] = []  # (operations, epochs) when a checkpoint was said to be written
    with Recorder(base) as disk:
        commit = files.commit

        def commit_and_tell(*given):
            path = commit(*given)
            done.append((len(disk.steps), files.epochs_of(path)))
            return path

        files.commit = commit_and_tell
        try:
            train(parts, base / "run", EPOCHS)
        finally:
            files.commit = commit
    whole, rng = losses(base / "run"), random.Random(args.seed)
    for number, (count, tree) in enumerate(disk.states(rng, args.each)):
        state = args.work / "state"
        shutil.rmtree(state, ignore_errors=True)
        write_tree(state, tree)
        at_least = max((epochs for steps, epochs in done if steps <= count), default=0)
        try:
            newest = check_run(state / "run", at_least)
            if newest and number % args.resume_every == 0:
                train(parts, state / "run", EPOCHS, resume=True)
                assert losses(state / "run") == whole, "resumed to other losses"
                say("training went on to the same losses")
            say(f"run: a checkpoint of {newest} epochs, whole")
        except Exception as error:
            say(f"FINDING run, after {count} of {len(disk.steps)} operations: {type(error).__name__}: {error}"[:200])


def graph() -> GraphData:
    rng = np.random.default_rng(0)
    feats = rng.standard_normal((60, 4)).astype(np.float32)
    fields = {"feats": feats, "labels": rng.integers(0, 3, 60), "train": np.arange(30)}
    return GraphData.from_arrays(rng.integers(0, 60, (200, 2)), 60, directed=False, name="g", **fields)


def whole(folder: Path) -> int:
    """Check everything in a partition folder; returns the seed it was cut with."""
    manifest = read_manifest(folder)
    for part_id in range(manifest["num_parts"]):
        load_part(folder, part_id)
    return manifest["seed"]


def of_cuts(args: argparse.Namespace, say) -> None:
    from distgnn.partition import partition_graph

    base = args.work / "cut"
    base.mkdir()
    partition_graph(graph(), 2, base / "parts", method="random", seed=1)
    with Recorder(base) as disk:
        partition_graph(graph(), 2, base / "new", method="random", seed=2)
    for count, tree in disk.states(random.Random(args.seed), args.each):
        state = args.work / "state"
        shutil.rmtree(state, ignore_errors=True)
        write_tree(state, tree)
        try:
            assert whole(state / "parts") == 1
            there = (state / "new").exists() and any((state / "new").iterdir())
            assert not there or whole(state / "new") == 2
            assert there or count < len(disk.steps), "written, and not there"
            say(f"cut: {'the whole folder' if there else 'nothing'}")
        except Exception as error:
            say(f"FINDING cut, after {count} of {len(disk.steps)} operations: {type(error).__name__}: {error}"[:200])


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("work", type=Path)
    parser.add_argument("--each", type=int, default=4, help="random states of each instant, besides all and none")
    parser.add_argument("--resume-every", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    from distgnn.partition import partition_graph
    from distgnn.system import atomic

    atomic._rename = rename_as_recorded
    shutil.rmtree(args.work, ignore_errors=True)
    args.work.mkdir(parents=True)
    partition_graph("communities:nodes=100,communities=4,feats=4,classes=4", 1, args.work / "parts", method="random")
    counts: collections.Counter = collections.Counter()
    of_runs(args, lambda text: counts.update([text]))
    of_cuts(args, lambda text: counts.update([text]))
    for text, count in sorted(counts.items()):
        print(f"{count:6d}  {text}")
    return 1 if any(text.startswith("FINDING") for text in counts) else 0


if __name__ == "__main__":
    sys.exit(main())
