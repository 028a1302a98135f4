"""From what a user has to a partition folder: a folder of parts as it is, anything else cut, once, into the cache.

A graph in memory is known by a hash of its arrays.
"""

import hashlib
import json
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

import distgnn
from distgnn.config import CutConfig
from distgnn.datasets import GraphData, load_graph
from distgnn.datasets.fields import EDGE_SPLITS, SPLITS
from distgnn.datasets.findings.findings import Findings
from distgnn.datasets.registry import GENERATORS, default_data_root, places
from distgnn.errors import InputError
from distgnn.fitting.cut_cache import cache_root, kept_cut, read_json
from distgnn.fitting.progress import phases
from distgnn.kernels import give_back_freed_memory
from distgnn.partition import partition_graph, read_manifest
from distgnn.partition.folder.manifest_file import FORMAT_VERSION, MANIFEST
from distgnn.system.atomic import check_name, replace_file
from distgnn.system.calls.launch import check_ranks
from distgnn.system.processor import available_cores

SPLIT = (0.6, 0.2, 0.2)  # of a graph that has none
RULES = "stratified, floats are values"  # what else a kept cut depends on
BY_LABELS = "by labels"  # the task where none is asked for: node of whole numbers, regression of floats
Say = Callable[[str], None]


@dataclass(frozen=True)
class Cut:
    """A partition folder to train on. Args: key: of the cut; options: of `distgnn partition`, beside parts and out."""

    folder: str
    manifest: dict[str, Any]
    key: str
    options: str = ""


@dataclass(frozen=True)
class _Source:
    """What is to be cut. Args: data: for `load_graph`; lines: of its reader; has_split: of vertices or edges."""

    data: Any
    content: str
    name: str
    num_feats: int
    has_split: bool
    lines: list[str]
    has_labels: bool = True
    has_values: bool = False
    has_types: bool = False


def is_parts(data: Any) -> bool:
    if isinstance(data, str | Path):
        check_name(data)
    return isinstance(data, str | Path) and (Path(data) / MANIFEST).is_file()


@contextmanager
def cut_of(
    data: Any,
    num_parts: int,
    config: CutConfig | None,
    split: tuple[float, float, float] | None,
    seed: int,
    data_root: str | Path | None = None,
    say: Say = lambda line: None,
    progress: Any = None,
    task: str | None = None,
) -> Iterator[Cut]:
    """The cut of a graph into parts, kept in the cache; it stays while the block runs.

    Args:
        config: how to cut; None: the defaults. split: shares of a random split by `seed`; None: the graph's own, and
            where it has none `SPLIT`. task: of the training, or `BY_LABELS`; labels are missed before the cut.
    """
    config = (config or CutConfig()).check_parts(num_parts)
    source = _read(data, data_root, config, task)
    if not (source.num_feats or source.has_types):  # before a large graph is cut
        left_out = "".join(f"; {line}" for line in source.lines if line.startswith("left out"))
        raise InputError(
            "the graph has no features: training needs at least one feature per vertex (beside edges, a matrix or "
            "files: a dict of edge_index, x and y; a NetworkX graph: dg.GraphData.from_networkx(G, feats=NAME); "
            f"in a shell: distgnn partition EDGES --feats FILE --labels FILE){left_out}"
        )
    if task in ("node", BY_LABELS) and not (source.has_labels or (task == BY_LABELS and source.has_values)):
        raise InputError(
            "the graph has no labels: task node needs them (y, labels); other tasks: link, regression, edge"
        )
    if split is not None and config.split is not None:
        raise InputError("the split is given twice: leave split out, or that of the CutConfig")
    if split is None and not (source.has_split or config.split is not None or config.link_split is not None):
        split = SPLIT
    if split is not None:
        config = replace(config, split=",".join(f"{share:g}" for share in split), seed=seed)
    version = [distgnn.__version__, FORMAT_VERSION, RULES]
    text = json.dumps([source.content, num_parts, asdict(config), version], default=list)
    key = hashlib.sha256(text.encode()).hexdigest()[:24]
    default = asdict(CutConfig())
    changed = {name: value for name, value in asdict(config).items() if value != default[name]}
    about = {"graph": source.name, "num_parts": num_parts, "options": changed}

    def cut(folder: Path) -> list[str]:
        said: list[str] = []
        partition_graph(source.data, num_parts, folder, config, data_root=data_root, say=said.append, progress=progress)
        return [*(line for line in source.lines if line not in said), *said]

    with kept_cut(key, about, cut, say) as folder:
        source = replace(source, data=None)  # the graph need not wait in memory while ranks train
        give_back_freed_memory()  # of 100,000 vertices with 4 million arcs 185 of 447 MB
        flags = ((name.replace("_", "-"), value) for name, value in changed.items() if name != "groups")
        words = "".join(f" --{name}" if value is True else f" --{name} {value}" for name, value in flags)
        yield Cut(str(folder), read_manifest(folder), key, words)


@contextmanager
def parts_for(
    data: Any,
    ranks: int | None,
    partition: CutConfig | str | Path | None,
    seed: int,
    data_root: str | Path | None = None,
    say: Say = lambda line: None,
    quiet: bool = False,
    split: tuple[float, float, float] | None = None,
    task: str | None = None,
) -> Iterator[Cut]:
    """A partition folder of the user's own as it is, or as `cut_of`, whose progress is shown."""
    if is_parts(data) or isinstance(partition, str | Path):
        if split is not None or (is_parts(data) and partition is not None):
            raise InputError("a partition folder is taken as it is: leave split, and partition beside it, out")
        cut = given_parts(data) if is_parts(data) else given_parts(partition, data)  # type: ignore[arg-type]
        needed = cut.manifest["num_parts"]
        if ranks is not None and check_ranks(ranks) != needed:
            raise InputError(
                f"{cut.folder} is for {needed} ranks, not {ranks}: leave ranks out, or give the graph itself"
            )
        yield cut
        return
    num_ranks = check_ranks(ranks)
    with ExitStack() as stack:
        with phases(not quiet) as progress:
            cut = stack.enter_context(cut_of(data, num_ranks, partition, split, seed, data_root, say, progress, task))
        yield cut


@contextmanager
def cut_alone(graph: GraphData, config: CutConfig, num_parts: int = 1) -> Iterator[str]:
    """A folder for files of this process, with the graph in `parts`; it is removed behind the block."""
    with tempfile.TemporaryDirectory(prefix="distgnn-predict-") as folder:
        partition_graph(graph, num_parts, Path(folder) / "parts", config, say=lambda line: None)
        yield folder


def given_parts(folder: str | Path, data: Any = None) -> Cut:
    """A partition folder of the user's own. Raises: InputError where it is not of the graph `data`, by its counts."""
    manifest = read_manifest(folder)
    if data is not None:
        graph = load_graph(data, findings=Findings())
        there, here = (manifest["num_nodes"], manifest["num_edges"]), (graph.num_nodes, graph.num_edges)
        if there != here:
            raise InputError(
                f"{folder} is of another graph: {there[0]} vertices and {there[1]} edges there, "
                f"{here[0]} and {here[1]} here"
            )
    return Cut(str(folder), manifest, manifest["sha256"])


def _read(data: Any, data_root: str | Path | None, config: CutConfig, task: str | None) -> _Source:
    """The graph's content, and what is known of it; a graph in files that is known already is not read, and one that
    is read is cut as it is (with `memory` and `renumber` the cut reads the files itself)."""
    if not isinstance(data, str | Path):
        findings = Findings()
        graph = load_graph(data, findings=findings, task=task)
        return _Source(graph, content_of_graph(graph), **_facts(graph), lines=findings.lines())
    content = content_of_source(str(data), data_root, config.seed)
    file = cache_root() / "graphs" / f"{content}{'-renumbered' * config.renumber}.json"
    known = read_json(file)
    source: str | Path | GraphData = data
    if known is None or known.keys() != {field.name for field in fields(_Source)} - {"data", "content"}:
        findings = Findings()
        graph = load_graph(data, data_root, config.seed, findings, config.renumber)
        known = _facts(graph) | {"lines": findings.lines()}
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        replace_file(file, json.dumps(known).encode())
        source = data if config.memory is not None or config.renumber else graph
    return _Source(source, content, **known)


def _facts(graph: GraphData) -> dict[str, Any]:
    has_split = any(getattr(graph, name) is not None for name in (*SPLITS, *EDGE_SPLITS))
    facts = {"name": graph.name, "num_feats": graph.num_feats, "has_split": has_split}
    columns = {name for of_type in graph.typed.values() for name in of_type}
    facts |= {"has_labels": graph.labels is not None or "labels" in columns, "has_types": bool(graph.types)}
    return facts | {"has_values": graph.node_values is not None or "values" in columns}


# What identifies a graph before it is cut: a hash of its content, whatever it was made from.
#
# In memory: every array of the `GraphData`. On disk: the file, or every file of the folder. A generated graph: its text
# and its seed.

BLOCK_BYTES = 1 << 24
NOT_CONTENT = ("findings", "files", "notes")


def content_of_graph(graph: GraphData) -> str:
    """The hash of a graph in memory; one pass over its arrays, on all cores."""
    with ThreadPoolExecutor(available_cores()) as pool:
        parts = [
            [field.name, _of_value(getattr(graph, field.name), pool)]
            for field in fields(graph)
            if field.name not in NOT_CONTENT
        ]
    return _text_hash(["graph", parts])


def content_of_source(source: str, data_root: str | Path | None, seed: int) -> str:
    """The hash of what `load_graph` reads for this text. Raises: InputError for files that cannot be read."""
    if source.partition(":")[0] in GENERATORS and ":" in source:
        return _text_hash(["generated", source, seed])
    root = Path(data_root) if data_root is not None else default_data_root()
    found = [path for path in dict.fromkeys(places(source, root)) if path.exists()]
    try:
        with ThreadPoolExecutor(available_cores()) as pool:
            hashes = []
            for place in found:
                files = [place] if place.is_file() else sorted(_files_below(place))
                names = [place.name] if place.is_file() else [path.relative_to(place).as_posix() for path in files]
                hashes.append([[n, _digests(_blocks_of(f), pool)] for n, f in zip(names, files, strict=True)])
            return _text_hash(["files", hashes])
    except OSError as error:
        raise InputError(f"{source} cannot be read: {error}") from error


def _files_below(folder: Path, within: tuple[Path, ...] = ()) -> Iterator[Path]:
    """All files, also behind links to folders. Args: within: the folders around this one, which a link may lead to."""
    within = (*within, folder.resolve())
    for path in folder.iterdir():
        if path.is_file():
            yield path
        elif path.is_dir() and path.resolve() not in within:
            yield from _files_below(path, within)


def _blocks_of(path: Path) -> Iterator[bytes]:
    with open(path, "rb") as stream:
        while block := stream.read(BLOCK_BYTES):
            yield block


def _of_value(value: Any, pool: ThreadPoolExecutor) -> Any:
    if hasattr(value, "indptr"):  # scipy CSR
        return [list(value.shape), *(_of_value(part, pool) for part in (value.indptr, value.indices, value.data))]
    if isinstance(value, dict):  # columns of types and relations
        return [[repr(key), _of_value(one, pool)] for key, one in value.items()]
    if not isinstance(value, np.ndarray):
        return repr(value)
    if value.dtype.kind == "U":
        return [str(value.dtype), _of_value(np.ascontiguousarray(value).view(np.uint32), pool)]
    rows = max(1, BLOCK_BYTES // max(1, value[:1].nbytes))
    blocks = (np.ascontiguousarray(value[first : first + rows]) for first in range(0, len(value), rows))
    return [str(value.dtype), list(value.shape), _digests(blocks, pool)]


def _digests(blocks: Any, pool: ThreadPoolExecutor) -> list[str]:
    return list(pool.map(lambda block: hashlib.sha256(block).hexdigest(), blocks))


def _text_hash(content: Any) -> str:
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()
