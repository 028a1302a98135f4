"""`communities:`: planted communities with power-law degrees and noisy features, so that neighbours help.

Legend: N vertices, E edges, D feature width, C classes.

A vertex has its community's class. One feature row says little (its class centre under `noise`), the mean of
a neighbourhood says much: of a vertex's edges a share `mixing` leads to anywhere, the rest stays in the community.
"""

from dataclasses import dataclass

import numpy as np

from distgnn.datasets.generators.generator_spec import normal_rows, parse_spec, random_split, run_in_threads, within
from distgnn.datasets.graph_data import GraphData
from distgnn.datasets.pairs import undirected_keys
from distgnn.errors import InputError

CHUNK = 1 << 20
# Degrees follow a power law with this exponent, cut off at sqrt(N).
EXPONENT = 2.5


@dataclass(frozen=True)
class CommunityOptions:
    nodes: int = within(2, 2**31 - 1, 20000)
    communities: int = within(1, 2**31 - 1, 40)
    avg_degree: float = within(1, 4096, 12.0)
    feats: int = within(1, 65536, 64)
    classes: int = within(1, 65536, 10)
    noise: float = within(0, 1e6, 0.75)
    mixing: float = within(0, 1, 0.4)
    train: float = within(0, 1, 0.2)
    seed: int = within(0, 2**63 - 1, 0)

    @property
    def size(self) -> tuple[int, int, int]:
        """Vertices, edges, width of features."""
        return self.nodes, int(self.nodes * self.avg_degree / 2), self.feats


def make_communities(spec: str, seed: int = 0) -> GraphData:
    """An undirected graph without duplicates and self-loops.

    Args:
        spec: `communities:nodes=,communities=,avg_degree=,feats=,classes=,noise=,mixing=,train=,seed=`; `train` is the
            share to learn from; 20 % (at most half of the others) are for validation, the rest for the test.
    Returns: GraphData with float32 feats, labels and splits.
    Notes: the same for any number of threads.
    """
    options = parse_spec(spec, CommunityOptions, seed)
    if options.communities > options.nodes or options.classes > options.communities:
        raise InputError(
            f"communities: needs classes <= communities <= nodes, found {options.classes}, "
            f"{options.communities}, {options.nodes}"
        )
    streams = np.random.SeedSequence(options.seed).spawn(5)
    rng = np.random.default_rng(streams[0])
    # [N] community of each vertex: sizes vary by a factor of a few, none is empty
    share = rng.uniform(0.5, 1.5, options.communities)
    cuts = np.cumsum(share) / share.sum() * (options.nodes - options.communities)
    sizes = np.diff(np.concatenate([[0], np.round(cuts).astype(np.int64)])) + 1
    community = rng.permutation(np.repeat(np.arange(options.communities, dtype=np.int32), sizes))
    edges = _make_edges(options, community, rng, streams[1])
    labels = community % options.classes
    notes = {"source": spec, "seed": options.seed}
    graph = GraphData(f"communities-{options.nodes}", options.nodes, edges, directed=False, notes=notes)
    graph.labels, graph.num_label_classes = labels.astype(np.int64), options.classes
    graph.feats = class_feats(labels, options.classes, options.feats, options.noise, streams[2])
    valid = min(0.2, (1 - options.train) / 2)
    graph.train, graph.valid, graph.test = random_split(options.nodes, options.train, valid, rng)
    return graph


def _make_edges(
    options: CommunityOptions, community: np.ndarray, rng: np.random.Generator, seed: np.random.SeedSequence
) -> np.ndarray:
    """[E, 2] int32: targets are drawn in proportion to degree, from the source's community or from all."""
    # [N] edges that leave each vertex, at least one; each edge gives two degrees in the mean
    pull = (1 - rng.random(options.nodes)) ** (-1 / (EXPONENT - 1))
    np.minimum(pull, np.sqrt(options.nodes), out=pull)
    expected = pull * (options.avg_degree / 2 / pull.mean())
    out_edges = np.maximum(np.floor(expected + rng.random(options.nodes)), 1).astype(np.int64)
    order = np.argsort(community, kind="stable").astype(np.int32)
    # Vertices by community, each as often as it has edges: a uniform draw from a range is a draw by degree.
    stubs = np.repeat(order, out_edges[order])
    members = np.bincount(community, weights=out_edges, minlength=options.communities).astype(np.int64)
    begins = np.cumsum(members) - members
    edges = np.empty((2, len(stubs)), dtype=np.int32)
    starts = range(0, len(stubs), CHUNK)

    def fill(start: int, chunk_seed: np.random.SeedSequence) -> None:
        sources = stubs[start : start + CHUNK]
        draw = np.random.default_rng(chunk_seed)
        home = community[sources]
        anywhere = draw.random(len(sources), dtype=np.float32) < options.mixing
        length = np.where(anywhere, len(stubs), members[home])
        place = (draw.random(len(sources)) * length).astype(np.int64)
        place += np.where(anywhere, 0, begins[home])
        edges[0, start : start + CHUNK] = sources
        edges[1, start : start + CHUNK] = stubs[place]

    run_in_threads(fill, starts, seed.spawn(len(starts)))
    # Drop self-loops and duplicates, and forget the order the edges were made in.
    num_nodes = options.nodes
    keys = undirected_keys(edges[0], edges[1], num_nodes)[edges[0] != edges[1]]
    keys.sort()
    keys = keys[np.concatenate([[True], keys[1:] != keys[:-1]])] if len(keys) else keys
    rng.shuffle(keys)
    result = np.empty((2, len(keys)), dtype=np.int32)
    result[0], result[1] = keys // num_nodes, keys % num_nodes
    return result.T


def class_feats(labels: np.ndarray, classes: int, width: int, noise: float, seed: np.random.SeedSequence) -> np.ndarray:
    """[N, D]: the class centre (unit length) plus `noise` times standard normal / sqrt(2)."""
    centre_seed, noise_seed = seed.spawn(2)
    centres = normal_rows(classes, width, centre_seed)
    centres /= np.linalg.norm(centres, axis=1, keepdims=True)
    feats = normal_rows(len(labels), width, noise_seed)
    feats *= np.float32(noise / np.sqrt(2))
    step = max(CHUNK // width, 1)
    for start in range(0, len(labels), step):
        feats[start : start + step] += centres[labels[start : start + step]]
    return feats
