"""The text that asks for a generated graph, `rmat:scale=18,edge_factor=16`; and the graphs of `rmat:`.

`rmat:`: recursive-matrix graphs with the skewed degrees of Graph500; shuffled ids, random features and labels.
"""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

import numpy as np

from distgnn.datasets.graph_data import GraphData
from distgnn.errors import InputError

Options = TypeVar("Options")


def within(low: float, high: float, default: Any) -> Any:
    """A field of options with the range of its values."""
    return field(default=default, metadata={"range": (low, high)})


def parse_spec(text: str, options_class: type[Options], seed: int) -> Options:
    """Fill a dataclass of options from `kind:key=value,...`, each within its range.

    Args:
        text: the whole source, for error messages too.
        options_class: dataclass whose fields are the known keys, with defaults that give their types; has `seed`.
        seed: used if the text names none.
    """
    kind, _, body = text.partition(":")
    known = {entry.name: entry for entry in fields(options_class)}  # type: ignore[arg-type]  # a dataclass
    values: dict[str, Any] = {"seed": seed}
    named = set()
    for item in filter(None, (part.strip() for part in body.split(","))):
        key, equals, value = (part.strip() for part in item.partition("="))
        if not equals or key not in known:
            raise InputError(f"{kind}: unknown option {item!r}; known are {', '.join(known)} (as key=value)")
        if key in named:
            raise InputError(f"{kind}: option {key!r} is given twice")
        named.add(key)
        whole = known[key].type is int
        try:
            number: float = float(value)
            if whole:
                number = int(value) if number != int(number) or "e" not in value.lower() else int(number)
        except (ValueError, OverflowError):
            expected = "a whole number" if whole else "a number"
            raise InputError(f"{kind}: {key} must be {expected}, found {value!r}") from None
        values[key] = number
    options = options_class(**values)
    for name, entry in known.items():
        (low, high), found = entry.metadata["range"], getattr(options, name)
        if entry.type is int and not isinstance(found, int | np.integer):  # a seed beside the text
            raise InputError(f"{kind}: {name} must be a whole number, found {found!r}")
        if not low <= found <= high:
            raise InputError(f"{kind}: {name} must be between {low} and {high}, found {found}")
    return options


# Probabilities of the four quadrants as Graph500 sets them, in 1/65536: top left, top right, bottom left.
QUADRANTS = (37356, 12452, 12452)
CHUNK = 1 << 18


@dataclass(frozen=True)
class RmatOptions:
    """2^scale vertices, edge_factor · 2^scale undirected edges (duplicates and self-loops as they fall)."""

    scale: int = within(1, 30, 16)
    edge_factor: int = within(1, 4096, 16)
    feats: int = within(0, 65536, 64)
    classes: int = within(0, 65536, 16)
    seed: int = within(0, 2**63 - 1, 0)

    @property
    def size(self) -> tuple[int, int, int]:
        """Vertices, edges, width of features."""
        return 1 << self.scale, self.edge_factor << self.scale, self.feats


def make_rmat(spec: str, seed: int = 0) -> GraphData:
    """An undirected RMAT graph.

    Args:
        spec: `rmat:scale=,edge_factor=,feats=,classes=,seed=`; feats=0 or classes=0 leave them out.
    Returns: GraphData with standard normal float32 feats, random labels and a random 60/20/20 split.
    Notes: the same for any number of threads.
    Source: Chakrabarti, Zhan, Faloutsos, "R-MAT", SDM 2004; Graph500's parameters.
    """
    options = parse_spec(spec, RmatOptions, seed)
    num_nodes = 1 << options.scale
    edge_seed, order_seed, feat_seed, label_seed = np.random.SeedSequence(options.seed).spawn(4)
    ids = np.random.default_rng(order_seed).permutation(num_nodes).astype(np.int32)
    edges = _make_edges(options.scale, num_nodes * options.edge_factor, edge_seed, ids)
    graph = GraphData(
        f"rmat-{options.scale}", num_nodes, edges, directed=False, notes={"source": spec, "seed": options.seed}
    )
    if options.feats:
        graph.feats = normal_rows(num_nodes, options.feats, feat_seed)
    if options.classes:
        rng = np.random.default_rng(label_seed)
        graph.labels = rng.integers(options.classes, size=num_nodes)
        graph.num_label_classes = options.classes
        graph.train, graph.valid, graph.test = random_split(num_nodes, 0.6, 0.2, rng)
    return graph


def _make_edges(scale: int, num_edges: int, seed: np.random.SeedSequence, ids: np.ndarray) -> np.ndarray:
    """[E, 2] int32, column-major, so that each column is contiguous."""
    edges = np.empty((2, num_edges), dtype=np.int32)
    starts = range(0, num_edges, CHUNK)

    def fill(start: int, chunk_seed: np.random.SeedSequence) -> None:
        sources, targets = _draw_chunk(scale, min(CHUNK, num_edges - start), chunk_seed)
        np.take(ids, sources, out=edges[0, start : start + CHUNK])
        np.take(ids, targets, out=edges[1, start : start + CHUNK])

    run_in_threads(fill, starts, seed.spawn(len(starts)))
    return edges.T


def _draw_chunk(scale: int, count: int, seed: np.random.SeedSequence) -> tuple[np.ndarray, np.ndarray]:
    """One quadrant per level gives one bit of the source and one of the target."""
    bits = np.random.PCG64(seed)
    top_left, top_right, bottom_left = QUADRANTS
    top = np.uint16(top_left + top_right)
    right_edge = np.uint16(top_left + top_right + bottom_left)
    sources, targets = np.zeros(count, dtype=np.int32), np.zeros(count, dtype=np.int32)
    for _ in range(scale):
        draw = bits.random_raw((count + 3) // 4).view(np.uint16)[:count]
        down = draw >= top
        right = np.where(down, draw >= right_edge, draw >= np.uint16(top_left))
        sources += sources
        sources += down
        targets += targets
        targets += right
    return sources, targets


def run_in_threads(function: Callable[..., None], *arguments: Iterable[Any]) -> None:
    """Call a function over zipped arguments on a few threads; numpy releases the interpreter in the long parts."""
    with ThreadPoolExecutor(max_workers=4) as pool:
        for _ in pool.map(function, *arguments):
            pass


def normal_rows(num_rows: int, width: int, seed: np.random.SeedSequence) -> np.ndarray:
    """[num_rows, width] standard normal float32, drawn in blocks of rows with one stream each."""
    rows = np.empty((num_rows, width), dtype=np.float32)
    step = max((1 << 20) // width, 1)
    starts = range(0, num_rows, step)

    def fill(start: int, block_seed: np.random.SeedSequence) -> None:
        np.random.default_rng(block_seed).standard_normal(dtype=np.float32, out=rows[start : start + step])

    run_in_threads(fill, starts, seed.spawn(len(starts)))
    return rows


def random_split(num_nodes: int, train: float, valid: float, rng: np.random.Generator) -> list[np.ndarray]:
    """Three sorted lists of ids: shares train and valid, and the rest."""
    order = rng.permutation(num_nodes)
    ends = [round(train * num_nodes), round((train + valid) * num_nodes)]
    return [np.sort(ids) for ids in np.split(order, ends)]
