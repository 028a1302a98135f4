"""Find a graph by what the user calls it: a name, a path, or a generator's text."""

import importlib
import os
from pathlib import Path
from typing import Any

from distgnn.config import did_you_mean
from distgnn.datasets.array_files import is_present
from distgnn.datasets.findings.cautions import add_cautions
from distgnn.datasets.findings.findings import Findings
from distgnn.datasets.graph_data import GraphData
from distgnn.datasets.objects.recognise import as_graph_data
from distgnn.datasets.text_table import TABLES, is_table
from distgnn.errors import InputError
from distgnn.system.atomic import check_name

GENERATORS = {  # what a text begins with -> module, function, class of options
    "rmat": ("generator_spec", "make_rmat", "RmatOptions"),
    "communities": ("communities", "make_communities", "CommunityOptions"),
    "typed": ("papers", "make_typed", "TypedOptions"),
}
OGB = (
    "ogbn-arxiv", "ogbn-products", "ogbn-proteins", "ogbn-mag", "ogbn-papers100M",
    "ogbl-ppa", "ogbl-collab", "ogbl-citation2", "ogbl-ddi", "ogbl-vessel",
)  # fmt: skip
# Name -> folder its files lie in, below the data root or one of its `ogb` and `dgl` folders.
NAMED = {name: name.replace("-", "_") for name in (*OGB, "reddit", "cora", "citeseer", "pubmed")}

TEXT_NAMES = ("edges.csv", "edges.txt", "edges.csv.gz", "edges.txt.gz")
OGB_NAMES = ("raw/edge.csv.gz", "raw/node-feat.csv.gz")
BYTES_OF_TEXT = {".gz": 4.0}  # in memory for each byte of the file; of plain text 1: "1234567 2345678" becomes 16


def default_data_root() -> Path:
    """The environment's DISTGNN_DATA, or `data` in the current folder."""
    return Path(os.environ.get("DISTGNN_DATA") or "data")


def load_graph(
    source: Any,
    data_root: str | Path | None = None,
    seed: int = 0,
    findings: Findings | None = None,
    renumber: bool = False,
    task: str | None = None,
) -> GraphData:
    """Load, or generate, and check a graph.

    Args:
        source: a path (plain graph folder, OGB's layout under any name, GraphSAINT's, Planetoid's or Reddit's files; or
            one file: an edge list, MatrixMarket, METIS, .npz, `dgl.save_graphs`, PyG's .pt), a name of `NAMED` or of a
            graph folder below the data root, `rmat:key=value,...`, `communities:key=value,...` or
            `typed:key=value,...`, or an object in memory that `as_graph_data` takes.
        data_root: where named graphs lie; the environment's DISTGNN_DATA, or `data`, if not given.
        seed: for generators whose text names no seed.
        findings: where it is written down what was taken, renamed, left out or looks wrong; without it one Python
            warning says it.
        renumber: the ids of an edge list as text are names: the vertices are 0 … N-1 in the order of these, and
            `node_names` keeps them.
        task: of an object in memory: `regression` takes its labels as values, `node` whole ones as classes.
    Returns: GraphData; large arrays may be mapped from disk.
    Raises: InputError if there is no such graph, GraphFormatError if it is damaged.

    Example:
        >>> data = dg.load_graph("communities:nodes=60,classes=4,feats=8")
        >>> data.num_nodes, data.feats.shape, data.num_classes
        (60, (60, 8), 4)
    """
    if not isinstance(source, str | Path):
        refuse_renumber("a graph in memory", renumber)
        found = Findings() if findings is None else findings
        made = isinstance(source, GraphData)
        asked = {} if made or task not in ("node", "regression") else {"task": task}
        graph = as_graph_data(source, None if made and findings is None else found, **asked)
        if findings is None:
            found.warn(graph.name, stacklevel=2)
        return graph
    source = str(source)
    kind, colon, _ = source.partition(":")
    if colon and kind in GENERATORS:
        refuse_renumber(source, renumber)
        make, _ = _generator(kind)
        return make(source, seed)
    root = Path(data_root) if data_root is not None else default_data_root()
    looked = []
    for folder in places(source, root):
        if folder.exists():
            found = Findings() if findings is None else findings
            read = _read(folder, found, renumber)
            if read is not None:
                add_cautions(read)
                if findings is None:
                    found.warn(read.name, stacklevel=2)
                return read
        looked.append(str(folder))
    raise _not_found(source, root, ", ".join(dict.fromkeys(looked)))


def _generator(kind: str) -> tuple[Any, Any]:
    module, *names = GENERATORS[kind]
    place = importlib.import_module(f"distgnn.datasets.generators.{module}")
    return getattr(place, names[0]), getattr(place, names[1])


def _not_found(source: str, root: Path, where: str) -> InputError:
    """The error on a source that is nowhere: what to do, for a name, a file or a folder. Args: where: it was looked."""
    if source in NAMED:
        return InputError(
            f"{source} is not here (looked in {where}); fetch it with: distgnn download {source} --data-root {root}, "
            "or name the folder that has it by --data-root (DISTGNN_DATA)"
        )
    from distgnn.datasets.files.kinds import kind_of

    if kind_of(Path(source)) and not Path(source).is_dir():
        return InputError(f"{source}: no such file (looked in {where})")
    local = sorted(path.parent.name for path in root.glob("*/graph.json")) if root.is_dir() else []
    names = list(dict.fromkeys([*NAMED, *local]))
    what = f"{source} is a folder without a graph" if Path(source).is_dir() else f"no graph {source!r}"
    return InputError(
        f"{what}{did_you_mean(source, names)} (looked in {where}); give a graph folder, one of {', '.join(names)}, "
        f"or a generator {', '.join(kind + ':' for kind in GENERATORS)}"
    )


def refuse_renumber(source: Any, renumber: bool) -> None:
    """Raise InputError where ids are to be renumbered that are 0 … N-1 already."""
    if renumber:
        raise InputError(f"renumber is for edge lists as text: the vertices of {source} have numbers from 0 already")


def places(source: str, root: Path) -> list[Path]:
    """Folders, or files, that a source may mean: the path itself, then the name below the data root."""
    check_name(source)
    if Path(source).is_absolute():
        return [Path(source)]
    names = [NAMED[source]] if source in NAMED else []
    below = [root / parent / name for name in names for parent in ("", "ogb", "dgl")]
    return [Path(source), root / source, *below]


def _read(folder: Path, findings: Findings, renumber: bool) -> GraphData | None:
    """Read a file, or a folder by the kind of its files; None if it is no graph folder."""
    from distgnn.datasets.formats.folder import is_graph_folder, read_folder
    from distgnn.datasets.formats.ogb import is_ogb_folder, read_ogb
    from distgnn.datasets.formats.planetoid import planetoid_name, read_planetoid
    from distgnn.datasets.formats.reddit import is_reddit_folder, is_saint_folder, read_reddit, read_saint

    if not folder.is_dir():
        return _read_file(folder, findings, renumber)
    refuse_renumber(folder, renumber)
    for is_kind, read in (
        (is_saint_folder, read_saint),
        (is_graph_folder, read_folder),
        (is_ogb_folder, read_ogb),
        (is_reddit_folder, read_reddit),
        (planetoid_name, read_planetoid),
    ):
        if is_kind(folder):
            return read(folder, findings)
    return None


def loading_bytes(source: Any, data_root: str | Path | None = None) -> int:
    """About how many bytes loading this source takes in memory, by its name and the sizes of its files.

    Returns: 0 where nothing can be said, for a graph that is in memory already, and for files that are mapped (`.npy`,
        uncompressed `.npz`); text and generated graphs are arrays in memory.
    """
    if not isinstance(source, str | Path):
        return 0
    kind, colon, _ = str(source).partition(":")
    if colon and kind in GENERATORS:
        from distgnn.datasets.generators.generator_spec import parse_spec

        _, options = _generator(kind)
        nodes, edges, feats = parse_spec(str(source), options, 0).size
        # Edges as int32 pairs with a key of 8 bytes each while duplicates are looked for, and float32 features.
        return 16 * edges + 4 * nodes * feats
    root = Path(data_root) if data_root is not None else default_data_root()
    for folder in places(str(source), root):
        if folder.is_file():
            text = is_table(folder) or folder.suffix == ".gz"
            return int(folder.stat().st_size * BYTES_OF_TEXT.get(folder.suffix, 1.0)) if text else 0
        files = [folder / name for name in (*TEXT_NAMES, *OGB_NAMES) if (folder / name).is_file()]
        if files:
            return int(sum(path.stat().st_size * BYTES_OF_TEXT.get(path.suffix, 1.0) for path in files))
    return 0


def _read_file(path: Path, findings: Findings, renumber: bool) -> GraphData:
    """Read and check the graph of one file; renumber: ids are names, which `node_names` keeps, and vertices 0 … N-1."""
    from distgnn.datasets.files.edge_text import read_edge_text
    from distgnn.datasets.files.kinds import PARQUET, READERS, kind_of
    from distgnn.datasets.files.parquet import read_edge_parquet
    from distgnn.datasets.files.saved import read_dgl, read_torch

    kind = kind_of(path)
    if not kind:
        raise InputError(
            f"{path} is a file: give its folder, {path.parent}, which needs graph.json and the edges, or a file of a "
            f"kind that is read: {', '.join(TABLES)}, .mtx, .graph (these also as .gz), KONECT's out.NAME, .npz, "
            ".parquet, .bin (DGL), .pt (PyG)"
        )
    is_present(path)
    if kind in TABLES or kind == PARQUET:
        return (read_edge_parquet if kind == PARQUET else read_edge_text)(path, findings, renumber)
    if renumber:
        raise InputError(f"{path}: renumber is for tables of edges: these vertices have numbers from 0 already")
    return (READERS | {".bin": read_dgl, ".pt": read_torch})[kind](path, findings)
