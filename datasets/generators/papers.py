"""`typed:`: papers, authors, institutions and fields in ogbn-mag's proportions, with planted classes.

Legend: N vertices of all types, E arcs of a relation, D feature width, C classes.

Every vertex has a class. An arc stays in the class of its source but for a share `mixing`. One feature row of a paper
says little (its class centre under `noise`), its authors, fields and citations say much.
"""

from dataclasses import dataclass

import numpy as np

from distgnn.datasets.findings.findings import Findings
from distgnn.datasets.generators.communities import EXPONENT, class_feats
from distgnn.datasets.generators.generator_spec import parse_spec, random_split, within
from distgnn.datasets.graph_data import GraphData

# Shares of ogbn-mag's vertices and arcs.
TYPES = {"author": 0.585, "field_of_study": 0.031, "institution": 0.0045, "paper": 0.3795}
RELATIONS = {
    ("author", "affiliated_with", "institution"): 0.049,
    ("author", "writes", "paper"): 0.338,
    ("paper", "cites", "paper"): 0.257,
    ("paper", "has_topic", "field_of_study"): 0.356,
}


@dataclass(frozen=True)
class TypedOptions:
    nodes: int = within(400, 2**31 - 1, 20000)
    avg_degree: float = within(0.1, 4096, 10.0)
    feats: int = within(1, 65536, 64)
    others: int = within(0, 65536, 0)
    classes: int = within(1, 65536, 10)
    noise: float = within(0, 1e6, 1.0)
    mixing: float = within(0, 1, 0.3)
    train: float = within(0, 1, 0.5)
    reverse: int = within(0, 1, 1)
    seed: int = within(0, 2**63 - 1, 0)

    @property
    def size(self) -> tuple[int, int, int]:
        """Vertices, edges, largest width of features."""
        return self.nodes, int(self.nodes * self.avg_degree * (1 + self.reverse)), max(self.feats, self.others)


def make_typed(spec: str, seed: int = 0) -> GraphData:
    """A typed graph without doubles and self-loops; papers have features, labels and splits.

    Args:
        spec: `typed:nodes=,avg_degree=,feats=,others=,classes=,noise=,mixing=,train=,reverse=,seed=`; `avg_degree` is
            arcs per vertex without reverse ones; `others` the width of features of authors and fields (0: none);
            `reverse` whether the reverse relations (rev_NAME) are there too; `train` the share of papers to learn from,
            half of the rest are for validation.
    """
    options = parse_spec(spec, TypedOptions, seed)
    streams = np.random.SeedSequence(options.seed).spawn(4)
    random = np.random.default_rng(streams[0])
    counts = {kind: max(round(share * options.nodes), 1) for kind, share in TYPES.items()}
    classes = {kind: random.integers(0, options.classes, count) for kind, count in counts.items()}
    pull = {kind: (1 - random.random(count)) ** (-1 / (EXPONENT - 1)) for kind, count in counts.items()}
    tables: dict = {kind: {"num_nodes": count} for kind, count in counts.items()}
    widths = {"paper": options.feats, "author": options.others, "field_of_study": options.others}
    for (kind, width), stream in zip(widths.items(), streams[1:], strict=True):
        if width:
            tables[kind]["feats"] = class_feats(classes[kind], options.classes, width, options.noise, stream)
    train, valid, test = random_split(counts["paper"], options.train, (1 - options.train) / 2, random)
    tables["paper"] |= {"labels": classes["paper"], "train": train, "valid": valid, "test": test}
    back = {}
    for relation, share in RELATIONS.items():
        source, name, target = relation
        size = round(share * options.nodes * options.avg_degree)
        ends = _arcs(size, classes[source], pull[source], classes[target], pull[target], options.mixing, random)
        tables[relation] = {"edge_index": ends[:, ends[0] != ends[1]] if source == target else ends}
        back[target, f"rev_{name}", source] = {"edge_index": tables[relation]["edge_index"][::-1]}
    tables |= back if options.reverse else {}
    about = {"notes": {"source": spec, "seed": options.seed}, "type_classes": {"paper": options.classes}}
    return GraphData.from_types(tables, findings=Findings(), name=f"typed-{options.nodes}", **about)


def _arcs(
    size: int,
    source_class: np.ndarray,
    source_pull: np.ndarray,
    target_class: np.ndarray,
    target_pull: np.ndarray,
    mixing: float,
    random: np.random.Generator,
) -> np.ndarray:
    """[2, E] int64, about `size` of them: ends are drawn in proportion to their pull, targets from the source's class
    but for a share `mixing`."""
    bounds = np.cumsum(np.minimum(source_pull, np.sqrt(len(source_pull))))
    sources = np.searchsorted(bounds, random.random(size) * bounds[-1])
    order = np.argsort(target_class, kind="stable")
    ends = np.concatenate([[0.0], np.cumsum(np.minimum(target_pull, np.sqrt(len(target_pull)))[order])])
    home = source_class[sources]
    begins = ends[np.searchsorted(target_class[order], home)]
    stops = ends[np.searchsorted(target_class[order], home, side="right")]
    anywhere = (random.random(size) < mixing) | (begins == stops)
    begins, stops = np.where(anywhere, 0, begins), np.where(anywhere, ends[-1], stops)
    places = np.searchsorted(ends, begins + random.random(size) * (stops - begins), side="right") - 1
    targets = order[np.minimum(places, len(order) - 1)]
    keys = np.unique(sources.astype(np.int64) * len(target_class) + targets)
    return np.stack([keys // len(target_class), keys % len(target_class)])
