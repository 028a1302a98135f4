"""`rmat:`: recursive-matrix graphs with the skewed degrees of Graph500; shuffled ids, random features and labels."""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from distgnn.datasets.generators.generator_spec import parse_spec, within
from distgnn.datasets.graph_data import GraphData

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
