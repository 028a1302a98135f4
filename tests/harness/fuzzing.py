"""Damaged and hostile files: small valid folders of every kind, mutations of them, and the readers that must survive.

A reader passes an input if it returns, or raises a `DistGNNError`; anything else (another exception, a peak of memory
far beyond the size of the files, a file that is written) is a finding. Checksums are made right again after most
mutations, so that the checks behind them are reached too.
"""

import gzip
import hashlib
import io
import json
import random
import shutil
import struct
import tempfile
import tracemalloc
import zipfile
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from distgnn.errors import DistGNNError

FREE_BYTES = 96 << 20  # of memory, whatever the size of the files (a block of a table is 4 MB of text)
BYTES_PER_BYTE = 5000  # gzip packs up to 1032 : 1, and a digit and a comma become 8 bytes
NUMBERS = (0, 1, -1, 2, 3, 255, 2**31 - 1, 2**31, 2**32, 2**53, 2**62, 2**63 - 1, 2**63, -(2**63), 10**12, 10**30)


@dataclass
class Target:
    """One kind of folder: its valid files, the reader, and how checksums are made right again."""

    name: str
    folder: Path
    read: Callable[[Path], object]
    repair: Callable[[Path, set[Path]], None] | None = None
    files: dict[Path, bytes] = field(default_factory=dict)

    def __post_init__(self):
        self.files = {path: path.read_bytes() for path in sorted(self.folder.rglob("*")) if path.is_file()}
        self.read(self.folder)  # valid as it stands

    def restore(self, changed: set[Path]) -> None:
        for path in changed:
            path.write_bytes(self.files[path])


def try_one(target: Target, rng: random.Random) -> str:
    """Mutate, read, restore; returns "read", "refused", or a finding that says what happened."""
    touched: set[Path] = set()
    changed = mutate_folder(target, rng, touched)
    if tracemalloc.is_tracing():
        tracemalloc.reset_peak()
    before = tracemalloc.get_traced_memory()[0]
    size = sum(path.stat().st_size for path in target.files if path.exists())
    try:
        target.read(target.folder)
        outcome = "read"
    except DistGNNError as error:
        outcome = "refused" if str(error) and "\n" not in str(error) else f"finding: no single line: {error!r}"
    except BaseException as error:
        outcome = f"finding: {type(error).__name__}: {error} after {changed}"
    if tracemalloc.is_tracing():
        peak = tracemalloc.get_traced_memory()[1] - before
        if peak > FREE_BYTES + BYTES_PER_BYTE * size:
            outcome = f"finding: {peak} bytes of memory for {size} bytes of files after {changed}"
    target.restore(touched)
    return outcome


def written_elsewhere(targets: list[Target], root: Path) -> list[Path]:
    """Files below `root` that no reader may have made."""
    known = {path for target in targets for path in target.files}
    return [path for path in root.rglob("*") if path.is_file() and path not in known and "run" not in path.parts]


def mutate_folder(target: Target, rng: random.Random, touched: set[Path]) -> str:
    """Change one or two files, or take one away; adds them to `touched` and returns what was done."""
    done = []
    for _ in range(rng.choice((1, 1, 1, 2))):
        path = rng.choice(list(target.files))
        touched.add(path)
        if rng.random() < 0.03:
            path.unlink(missing_ok=True)
            done.append(f"{path.name} removed")
            continue
        content = path.read_bytes() if path.exists() else target.files[path]
        kind = rng.choice(MUTATIONS.get(path.suffix, (flip_bytes,)))
        path.write_bytes(kind(content, rng))
        done.append(f"{path.name} {kind.__name__}")
    if target.repair and rng.random() < 0.8:
        try:
            target.repair(target.folder, touched)
        except (ValueError, KeyError, TypeError, OSError, AttributeError, IndexError, RecursionError):
            pass
    return ", ".join(done)


def flip_bytes(content: bytes, rng: random.Random) -> bytes:
    """A few bytes become others; or a piece is cut out, doubled, or cut off."""
    data = bytearray(content)
    kind = rng.randrange(4)
    if not data or kind == 0:
        for _ in range(rng.randint(1, 4)):
            if data:
                data[rng.randrange(len(data))] = rng.randrange(256)
    elif kind == 1:
        del data[rng.randrange(len(data)) :]
    else:
        begin = rng.randrange(len(data))
        piece = data[begin : begin + rng.randint(1, 64)]
        data[begin : begin + (0 if kind == 2 else len(piece))] = piece if kind == 2 else b""
    return bytes(data)


def change_json(content: bytes, rng: random.Random) -> bytes:
    """One value anywhere becomes another; or a key goes or is doubled under another name."""
    try:
        value = json.loads(content)
    except ValueError:
        return flip_bytes(content, rng)
    holders = []

    def walk(node) -> None:
        items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
        for key, below in items:
            holders.append((node, key))
            walk(below)

    walk(value)
    if holders:
        node, key = rng.choice(holders)
        old = node[key]
        news = [*NUMBERS, None, True, "", "../../etc/passwd", "x" * 300, [], {}, [[]], 1e308, -0.5, float("nan")]
        if isinstance(old, int) and not isinstance(old, bool):
            news += [old + 1, old - 1, old * 2, -old]
        if isinstance(node, dict) and rng.random() < 0.2:
            del node[key]
        else:
            node[key] = rng.choice(news)
    return json.dumps(value).encode()


def change_header(content: bytes, rng: random.Random) -> bytes:
    """Another shape, type or order in the header of a .npy file, its length kept right."""
    if not _holds_what_it_says(content):
        return flip_bytes(content, rng)
    try:
        array = np.load(io.BytesIO(content), allow_pickle=False)
    except Exception:
        return flip_bytes(content, rng)
    shape = list(array.shape) or [1]
    place = rng.randrange(len(shape))
    shape[place] = rng.choice([*NUMBERS, shape[place] + 1, max(shape[place] - 1, 0)])
    if rng.random() < 0.2:
        shape = [*shape, rng.choice(NUMBERS)]
    kinds = [array.dtype.str] * 3 + [
        "<f8",
        "<i8",
        "|b1",
        "|O",
        "<U9",
        ">i4",
        "<c16",
        "|V1000000",
        "[('a','<i4')]",
        "|S0",
    ]
    descr = rng.choice(kinds)
    text = f"{{'descr': {descr!r}, 'fortran_order': {rng.random() < 0.2}, 'shape': {tuple(shape)}, }}"
    if descr.startswith("["):
        text = text.replace(repr(descr), descr)
    header = text.encode()
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + array.tobytes()


def change_values(content: bytes, rng: random.Random) -> bytes:
    """A few numbers of an array become extreme ones; the header stays."""
    if not _holds_what_it_says(content):  # already hostile: making it would take what it promises
        return flip_bytes(content, rng)
    try:
        array = np.load(io.BytesIO(content), allow_pickle=False).copy()
    except Exception:
        return flip_bytes(content, rng)
    flat = array.reshape(-1)
    for _ in range(rng.randint(1, 3)):
        if len(flat):
            place = rng.randrange(len(flat))
            if array.dtype.kind == "f":
                flat[place] = rng.choice([np.nan, np.inf, -1e30, 0.0])
            elif array.dtype.kind in "iu":
                info = np.iinfo(array.dtype)
                flat[place] = min(max(rng.choice([*NUMBERS, int(flat[place]) + 1, len(flat)]), info.min), info.max)
            elif array.dtype.kind == "b":
                flat[place] = not flat[place]
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


def _holds_what_it_says(content: bytes) -> bool:
    stream = io.BytesIO(content)
    try:
        np.lib.format.read_magic(stream)
        shape, _, dtype = np.lib.format.read_array_header_1_0(stream)
    except Exception:
        return False
    return int(np.prod(shape, dtype=object)) * max(dtype.itemsize, 1) <= len(content)


def change_gzip(content: bytes, rng: random.Random) -> bytes:
    """The text inside is changed and packed again; now and then it is a bomb."""
    try:
        text = gzip.decompress(content)
    except Exception:
        return flip_bytes(content, rng)
    if rng.random() < 0.01:
        return gzip.compress(b"1,1\n" * (1 << 20), 1)
    return gzip.compress(change_text(text, rng), 1)


def change_text(content: bytes, rng: random.Random) -> bytes:
    """A number of a table or a setting becomes another, or a line is doubled, cut or nonsense."""
    lines = content.split(b"\n")
    place = rng.randrange(len(lines))
    kind = rng.randrange(5)
    if kind == 0:
        lines[place] = str(rng.choice(NUMBERS)).encode()
    elif kind == 1:
        fields = lines[place].replace(b"=", b",").split(b",")
        fields[rng.randrange(len(fields))] = str(
            rng.choice([*NUMBERS, "nan", "1e400", "", "x", "../../x", "'", "[[", '"""'])
        ).encode()
        lines[place] = (b" = " if b"=" in lines[place] else b",").join(fields)
    elif kind == 2:
        lines[place:place] = [lines[place]] * rng.randint(1, 3)
    elif kind == 3:
        del lines[place]
    else:
        return flip_bytes(content, rng)
    return b"\n".join(lines)


def change_zip(content: bytes, rng: random.Random) -> bytes:
    """A member of an .npz is changed, renamed, packed, or left out."""
    return _change_archive(content, rng, (change_header, change_values, flip_bytes))


def change_members(content: bytes, rng: random.Random) -> bytes:
    """The same for an archive of tables."""
    return _change_archive(content, rng, (change_gzip, flip_bytes))


def _change_archive(content: bytes, rng: random.Random, kinds: tuple) -> bytes:
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
    except Exception:
        return flip_bytes(content, rng)
    if not members:
        return flip_bytes(content, rng)
    name = rng.choice(list(members))
    kind = rng.randrange(4)
    if kind == 0:
        members[rng.choice(["../../x.npy", "/x.npy", "y.npy", "mag/../../../x", "mag/raw"])] = members.pop(name)
    elif kind == 1:
        members.pop(name)
    else:
        members[name] = rng.choice(kinds)(members[name], rng)
    out = io.BytesIO()
    packing = rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))
    with zipfile.ZipFile(out, "w", packing) as archive:
        for member, data in members.items():
            archive.writestr(member, data)
    return out.getvalue() if rng.random() < 0.9 else flip_bytes(out.getvalue(), rng)


def change_safetensors(content: bytes, rng: random.Random) -> bytes:
    """Another header (names, shapes, offsets, its length) in front of the same bytes."""
    length = struct.unpack("<Q", content[:8])[0] if len(content) >= 8 else 0
    if not 0 < length < len(content):
        return flip_bytes(content, rng)
    header, rest = content[8 : 8 + length], content[8 + length :]
    header = change_json(header, rng)
    said = len(header) if rng.random() < 0.8 else rng.choice([n for n in NUMBERS if 0 <= n < 2**64])
    return struct.pack("<Q", said) + header + rest


MUTATIONS = {
    ".npy": (change_header, change_values, change_values, flip_bytes),
    ".npz": (change_zip, change_zip, flip_bytes),
    ".zip": (change_members, change_members, flip_bytes),
    ".json": (change_json, change_json, flip_bytes),
    ".jsonl": (change_text, flip_bytes),
    ".toml": (change_text, change_text, flip_bytes),
    ".gz": (change_gzip, change_gzip, flip_bytes),
    ".csv": (change_text, flip_bytes),
    ".txt": (change_text, flip_bytes),
    ".safetensors": (change_safetensors, flip_bytes),
}


def repair_partition(folder: Path, touched: set[Path]) -> None:
    """Write the manifest's checksums and sizes (and most shapes) anew, as whoever forges a folder would."""
    from distgnn.partition.writer import manifest_digest

    file = folder / "partition.json"
    manifest = json.loads(file.read_bytes())
    for number, part in enumerate(manifest["parts"]):
        for name, entry in part["files"].items():
            path = folder / f"part-{number}" / f"{name}.npy"
            if path not in touched:
                continue
            content = path.read_bytes()
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
    from distgnn.train import checkpoint_files as files

    file = folder / files.STATE
    state = json.loads(file.read_bytes())
    for name, entry in state["files"].items():
        content = (folder / f"{name}.safetensors").read_bytes()
        entry["bytes"], entry["sha256"] = len(content), hashlib.sha256(content).hexdigest()
    touched.add(file)
    state["sha256"] = files._digest(state)
    file.write_text(json.dumps(state))


def make_targets(root: Path) -> list[Target]:
    """A small valid folder of each kind below `root`, with its reader."""
    from distgnn.datasets import load_graph

    graphs = _graph_folders(root)
    targets = [Target(name, folder, load_graph) for name, folder in graphs.items()]
    targets += _partition_targets(root)
    return targets + _run_targets(root) + _single_files(root)


def _small_graph(**extra):
    from distgnn.datasets import GraphData

    rng = np.random.default_rng(0)
    feats = rng.standard_normal((24, 3)).astype(np.float32)
    fields = {"feats": feats, "labels": rng.integers(0, 3, 24), "edge_weight": rng.random(60).astype(np.float32)}
    splits = {"train": np.arange(12), "valid": np.arange(12, 18), "test": np.arange(18, 24)}
    return GraphData.from_arrays(rng.integers(0, 24, (60, 2)), 24, directed=False, name="g", **fields | splits | extra)


def _graph_folders(root: Path) -> dict[str, Path]:
    import scipy.sparse

    places = {name: root / name for name in ("graph", "sparse", "table")}
    _small_graph().save(places["graph"])
    sparse = scipy.sparse.random(24, 9, 0.3, "csr", np.float32, 0)
    multilabel = np.random.default_rng(1).integers(0, 2, (24, 3)).astype(np.int8)
    _small_graph(feats=sparse, labels=multilabel).save(places["sparse"])
    _small_graph(edge_weight=None).save(places["table"])
    edges = np.load(places["table"] / "edges.npy")
    (places["table"] / "edges.npy").unlink()
    (places["table"] / "edges.csv.gz").write_bytes(gzip.compress(_csv(edges)))
    return places | {
        "ogb": _ogb(root / "ogbn_arxiv"),
        "mag": _mag(root / "ogbn_mag"),
        "papers": _papers(root / "ogbn_papers100M"),
        "reddit": _reddit(root),
    }


def _csv(rows) -> bytes:
    return (
        "\n".join(",".join(map(str, row)) for row in np.asarray(rows).reshape(len(rows), -1).tolist()).encode() + b"\n"
    )


def _ogb(folder: Path) -> Path:
    rng = np.random.default_rng(2)
    tables = {
        "raw/edge": rng.integers(0, 20, (50, 2)),
        "raw/num-node-list": [20],
        "raw/num-edge-list": [50],
        "raw/node-label": rng.integers(0, 40, 20),
        "raw/node-feat": rng.standard_normal((20, 3)).round(3),
        **_splits(20),
    }
    return _write_tables(folder, tables)


def _splits(count: int) -> dict:
    thirds = np.array_split(np.arange(count), 3)
    return {f"split/time/{name}": ids for name, ids in zip(("train", "valid", "test"), thirds, strict=True)}


def _write_tables(folder: Path, tables: dict) -> Path:
    for name, rows in tables.items():
        path = folder / f"{name}.csv.gz"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(_csv(rows)))
    return folder


def _mag(folder: Path) -> Path:
    rng = np.random.default_rng(6)
    sizes = {"author": 8, "paper": 12}
    edges = {"author___writes___paper": (8, 12), "paper___cites___paper": (12, 12)}
    words = {
        "raw/num-node-dict": [sizes, sizes.values()],
        "raw/nodetype-has-label": [sizes, (False, True)],
        "raw/triplet-type-list": [name.split("___") for name in edges],
        "split/time/nodetype-has-split": [sizes, (False, True)],
    }
    tables = {
        "raw/node-feat/paper/node-feat": rng.standard_normal((12, 3)).round(3),
        "raw/node-label/paper/node-label": rng.integers(0, 349, 12),
    }
    for name, (sources, targets) in edges.items():
        ends = [rng.integers(0, sources, 20), rng.integers(0, targets, 20)]
        tables |= {f"raw/relations/{name}/edge": np.stack(ends, 1), f"raw/relations/{name}/num-edge-list": [20]}
    tables |= {name.replace("time/", "time/paper/"): ids for name, ids in _splits(12).items()}
    _write_tables(folder, tables)
    for name, rows in words.items():
        text = "".join(",".join(map(str, row)) + "\n" for row in rows)
        (folder / f"{name}.csv.gz").write_bytes(gzip.compress(text.encode()))
    return folder


def _papers(folder: Path) -> Path:
    rng = np.random.default_rng(3)
    _write_tables(folder, _splits(20))
    (folder / "raw").mkdir()
    feats = rng.standard_normal((20, 4)).astype(np.float32)
    edges = rng.integers(0, 20, (2, 50))
    np.savez(folder / "raw" / "data.npz", edge_index=edges, num_nodes_list=np.array([20]), node_feat=feats)
    np.savez(folder / "raw" / "node-label.npz", node_label=rng.integers(0, 172, (20, 1)).astype(np.float32))
    return folder


def _reddit(root: Path) -> Path:
    import scipy.sparse

    folder, rng = root / "reddit", np.random.default_rng(4)
    folder.mkdir()
    half = scipy.sparse.triu(scipy.sparse.random(20, 20, 0.2, "coo", np.float32, 5), 1)
    scipy.sparse.save_npz(folder / "reddit_graph.npz", (half + half.T).tocoo())
    columns = {"feature": rng.standard_normal((20, 4)), "label": rng.integers(0, 41, 20)}
    np.savez(folder / "reddit_data.npz", **columns, node_types=rng.integers(1, 4, 20))
    return folder


def _partition_targets(root: Path) -> list[Target]:
    from distgnn.loader import load
    from distgnn.partition import describe, partition_graph
    from distgnn.partition.repartition import load_whole

    def read(folder: Path) -> None:
        describe(folder)
        load_whole(folder)  # every part, every check, and whether they make up a graph
        if folder.name != "two-parts":
            load(str(folder))  # as a rank does

    rng = np.random.default_rng(7)
    types = {"edge_types": rng.integers(0, 2, 60), "node_types": rng.integers(0, 3, 24)}
    kinds = {
        "one part": (1, {}),
        "typed part": (1, {"edge_weight": None, **types}),
        "two parts": (2, {"edge_feats": np.ones((60, 2), np.float32)}),
    }
    found = []
    for name, (parts, options) in kinds.items():
        folder = root / name.replace(" ", "-")
        partition_graph(_small_graph(**options), parts, folder, method="libra")
        found.append(Target(name, folder, read, repair_partition))
    return found


def _single_files(root: Path) -> list[Target]:
    """What is no folder of a format: a file of hosts, what a rank measured or does, an archive that was fetched."""
    from distgnn import kernels, tuning
    from distgnn.datasets.ogb_download import unpack
    from distgnn.hosts import read_hosts
    from distgnn.train.watchdog import _fault

    indptr, indices, rows = np.array([0, 3, 5]), np.array([0, 1, 1, 0, 1]), np.ones((2, 16), np.float32)

    def read_tuning(folder: Path) -> None:
        path = folder / tuning.TUNING
        found = tuning._read(path)
        if found is not None and path.stat().st_size < 10_000:
            kernels.use_tunings(found)
            kernels.spmm(indptr, indices, rows)
            kernels.use_tunings({})

    def read_status(folder: Path) -> None:
        path = folder / "rank-0.json"
        text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else None
        _fault(None, text)

    def read_archive(folder: Path) -> None:
        with tempfile.TemporaryDirectory(dir=root / "archive-run") as place:
            if (folder / "mag.zip").is_file():
                shutil.copy(folder / "mag.zip", place)
                unpack(Path(place))

    contents = {
        "tuning": {tuning.TUNING: json.dumps({"machine": tuning.machine(), "arcs_ahead": {"64": 8, "256": 4}})},
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

    from distgnn.cli.resume import take_saved
    from distgnn.config import ModelConfig, TrainConfig
    from distgnn.nn import build_model
    from distgnn.train import Trainer, load_best
    from distgnn.train import checkpoint_files as files
    from distgnn.train.checkpoint import check_tensors, unpack
    from distgnn.train.identity import check_identity
    from distgnn.train.run_folder import model_config, read_config, read_metrics
    from distgnn.train.schedule import EarlyStopping, LearningRate, Schedules

    torch.manual_seed(0)
    graph = whole_graph(random_graph(1))
    model = build_model(ModelConfig(hidden_feats=2, num_layers=2), graph.num_feats, graph.num_classes)
    run = root / "run"
    describe = {"model": {"name": "sage", "hidden_feats": 2}, "run": {"dtype": "float64", "algorithm": "cd-0"}}
    trainer = Trainer(model, graph, TrainConfig(epochs=2, run_dir=str(run)), describe=describe)
    trainer.fit()
    checkpoint = files.find_checkpoints(run)[0]
    config = SimpleNamespace(model=trainer.model, optimizer=trainer.optimizer)

    def read_checkpoint(folder: Path) -> None:
        state = files.read_state(folder)
        check_identity(folder, state, trainer.settings, trainer.fingerprint)
        contents = {name: files.read_file(folder, state, name) for name in files.COMMON_FILES}
        tensors = {name: unpack(folder, name, content) for name, content in contents.items() if content is not None}
        check_tensors(folder, tensors, config)
        schedules = Schedules(LearningRate(trainer.config), EarlyStopping(0))
        files.restore_schedules(schedules, state)

    def read_run(folder: Path) -> None:
        read_metrics(folder / "metrics.jsonl")
        load_best(str(folder), model)
        saved = read_config(str(folder))
        model_config(str(folder), saved)
        settings = {"model": asdict(ModelConfig()), "run": {"dtype": "float32", "algorithm": "cd-0", "runs": 1}}
        asked = TrainConfig()
        take_saved(str(folder), set(), asked, settings)
        asked.check()

    small = root / "small-run"
    (small / "checkpoint").mkdir(parents=True)
    for name in ("config.toml", "metrics.jsonl", "checkpoint/best.safetensors"):
        (small / name).write_bytes((run / name).read_bytes())
    # The checkpoint's folder keeps its name: it is part of what is checked.
    return [Target("checkpoint", checkpoint, read_checkpoint, repair_checkpoint), Target("run folder", small, read_run)]
