"""The readers that must survive hostile files, each with a small valid folder and the means to forge its checksums."""

import hashlib
import importlib.util
import io
import json
import shutil
import tempfile
import zipfile
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
from fuzz_foreign import foreign_targets
from fuzzing import Target
from valid_graphs import full_graph, graph_folders, small_graph, typed_graph


def _of_extras() -> list[ModuleType]:
    """`fuzz.py` of each extra: KINDS, SLOW, FORGIVING, if need be DRAWN, and `targets(root)`."""
    found = []
    for file in sorted(Path(__file__).parents[1].glob("extras/*/fuzz.py")):
        spec = importlib.util.spec_from_file_location(f"fuzz_{file.parent.name}", file)
        found.append(importlib.util.module_from_spec(spec))
        spec.loader.exec_module(found[-1])
    return found


EXTRAS = _of_extras()
KINDS = (
    "graph", "sparse", "table", "typed", "ogb", "mag", "papers", "reddit", "planetoid", "archive", "one part",
    "typed part", "two parts", "book", "checkpoint", "run folder", "settings", "tuning", "status",
    "hosts", "tables", "ogb links",
)  # fmt: skip
FORGIVING = ("tuning", "status")  # what is damaged counts as not there
SLOW = ("one part", "typed part", "two parts")
DRAWN: tuple[str, ...] = ()  # figures are made of it
for _extra in EXTRAS:
    DRAWN += getattr(_extra, "DRAWN", ())
    KINDS, FORGIVING, SLOW = KINDS + _extra.KINDS, FORGIVING + _extra.FORGIVING, SLOW + _extra.SLOW


def make_targets(root: Path) -> list[Target]:
    """A small valid folder of each kind below `root`, with its reader."""
    from distgnn.datasets import load_graph

    graphs = graph_folders(root)
    targets = [Target(name, folder, load_graph) for name, folder in graphs.items()]
    targets += _partition_targets(root)
    targets += _run_targets(root) + _single_files(root) + foreign_targets(root)
    targets += [target for extra in EXTRAS for target in extra.targets(root)]
    names = {target.name for target in targets}
    assert names == set(KINDS), names ^ set(KINDS)
    return targets


def repair_partition(folder: Path, touched: set[Path]) -> None:
    """Write the manifest's checksums and sizes (and most shapes) anew, as whoever forges a folder would."""
    from distgnn.partition.folder.writer import manifest_digest

    file = folder / "partition.json"
    manifest = json.loads(file.read_bytes())
    for number, part in enumerate(manifest["parts"]):
        for name, entry in part["files"].items():
            path = folder / f"part-{number}" / f"{name}.npy"
            if path not in touched:
                continue
            content = _content(path)
            entry["bytes"], entry["sha256"] = len(content), hashlib.sha256(content).hexdigest()
            try:
                entry["shape"] = list(np.load(io.BytesIO(content), allow_pickle=False).shape)
            except Exception:
                pass
    touched.add(file)
    manifest["sha256"] = manifest_digest(manifest)
    file.write_text(json.dumps(manifest))


def repair_checkpoint(folder: Path, touched: set[Path]) -> None:
    """The same for a checkpoint."""
    from distgnn.train.checkpoint import files as files

    file = folder / files.STATE
    state = json.loads(file.read_bytes())
    for name, entry in state["files"].items():
        content = _content(folder / f"{name}.safetensors")
        entry["bytes"], entry["sha256"] = len(content), hashlib.sha256(content).hexdigest()
    touched.add(file)
    state["sha256"] = files._digest(state)
    file.write_text(json.dumps(state))


def _content(path: Path) -> bytes:
    """A pipe or a device in a file's place has the size 0."""
    return path.read_bytes() if path.is_file() or not path.exists() else b""


def _partition_targets(root: Path) -> list[Target]:
    from distgnn.cli.commands.partition import rows_of_table
    from distgnn.cli.commands.show import _part, summary_of
    from distgnn.graph.loader import load
    from distgnn.partition import describe, partition_graph, read_manifest
    from distgnn.partition.repartition import load_whole

    def read(folder: Path) -> None:
        facts = describe(folder)  # as `distgnn info` shows it
        summary_of(facts), [_part(part) for part in facts["parts"]], rows_of_table(read_manifest(folder), "parts")
        load_whole(folder)  # every part, every check, and whether they make up a graph
        if folder.name != "two-parts":
            load(str(folder))  # as a rank does

    kinds = {
        "one part": (1, full_graph()),
        "typed part": (1, typed_graph()),
        "two parts": (2, small_graph(edge_feats=np.ones((60, 2), np.float32))),
    }
    found = []
    for name, (parts, graph) in kinds.items():
        folder = root / name.replace(" ", "-")
        partition_graph(graph, parts, folder, method="libra")
        found.append(Target(name, folder, read, repair_partition))
    return found


def _single_files(root: Path) -> list[Target]:
    """What is no folder of a format: a file of hosts, what a rank measured or does, an archive that was fetched."""
    from distgnn.datasets.downloads import unpack_ogb
    from distgnn.graph import tuning
    from distgnn.system.hosts import read_hosts
    from distgnn.system.jobs.watchdog import fault

    def read_tuning(folder: Path) -> None:
        tuning.kept(folder / "tuning.json")

    def read_status(folder: Path) -> None:
        path = folder / "rank-0.json"
        text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else None
        fault(text, answers=True)

    def read_archive(folder: Path) -> None:
        with tempfile.TemporaryDirectory(dir=root / "archive-run") as place:
            if (folder / "mag.zip").is_file():
                shutil.copy(folder / "mag.zip", place)
                unpack_ogb(Path(place))

    tuned = {
        "machine": tuning.machine(),
        "program": tuning.program(),
        "choices": {"ahead_256": 4096, "blocked": 1},
        "times": {},
    }
    contents = {
        "tuning": {"tuning.json": json.dumps(tuned)},
        "status": {"rank-0.json": json.dumps({"waits": False, "phase": "forward", "seconds": 2.5, "place": "a:1"})},
        "hosts": {"hosts.txt": "# two\nnode1\nnode2:3\nnode3 slots=2\n"},
        "archive": {},
    }
    for name, files in contents.items():
        (root / name).mkdir()
        for file, text in files.items():
            (root / name / file).write_text(text)
    (root / "archive-run").mkdir()
    with zipfile.ZipFile(root / "archive" / "mag.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for file in ("raw/num-node-dict.csv.gz", "split/time/paper/train.csv.gz"):
            archive.writestr(f"mag/{file}", (root / "ogbn_mag" / file).read_bytes())
    readers = {"tuning": read_tuning, "status": read_status, "archive": read_archive}
    readers["hosts"] = lambda folder: read_hosts(str(folder / "hosts.txt"))
    return [Target(name, root / name, readers[name]) for name in contents]


def _run_targets(root: Path) -> list[Target]:
    import torch
    from cut_graphs import random_graph, whole_graph

    from distgnn.config import ModelConfig, TrainConfig, read_settings
    from distgnn.nn import build_model
    from distgnn.train import Trainer, load_best
    from distgnn.train.checkpoint import files as files
    from distgnn.train.checkpoint.identity import check_identity
    from distgnn.train.checkpoint.state import check_tensors, unpack
    from distgnn.train.lr_schedule import EarlyStopping
    from distgnn.train.run.run_folder import model_config, read_config, read_metrics

    torch.manual_seed(0)
    graph = whole_graph(random_graph(1))
    model = build_model(ModelConfig(hidden_feats=2, num_layers=2), graph.num_feats, graph.num_classes)
    run = root / "run"
    describe = {"model": {"name": "sage", "hidden_feats": 2}, "run": {"dtype": "float64", "algorithm": "cd-0"}}
    trainer = Trainer(model, graph, TrainConfig(epochs=2, run_dir=str(run)), describe=describe)
    trainer.fit()
    checkpoint = files.find_checkpoints(run)[0]
    config = SimpleNamespace(model=trainer.model, optimizer=trainer.optimizer, gradients=trainer.gradients)

    def read_checkpoint(folder: Path) -> None:
        state = files.read_state(folder)
        check_identity(folder, state, trainer.settings, trainer.fingerprint)
        contents = {name: files.read_file(folder, state, name) for name in files.COMMON_FILES}
        tensors = {name: unpack(folder, name, content) for name, content in contents.items() if content is not None}
        check_tensors(folder, tensors, config)
        EarlyStopping(0).load_state(state["stopping"])

    def read_run(folder: Path) -> None:
        read_metrics(folder / "metrics.jsonl")
        load_best(str(folder), model)
        saved = read_config(str(folder))
        model_config(str(folder), saved)
        read_settings(folder / "config.toml").checked()

    small = root / "small-run"
    (small / "checkpoint").mkdir(parents=True)
    for name in ("config.toml", "metrics.jsonl", "checkpoint/best.safetensors"):
        (small / name).write_bytes((run / name).read_bytes())
    # The checkpoint's folder keeps its name: it is part of what is checked.
    return [Target("checkpoint", checkpoint, read_checkpoint, repair_checkpoint), Target("run folder", small, read_run)]
