"""How a graph is cut: the options of `partition_graph`, `cut_edges` and `distgnn partition`, each written here once."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from numbers import Integral
from typing import Any

from distgnn.config.option import check_values, documented, option, options_of
from distgnn.config.together import check_together, uses_effort
from distgnn.errors import InputError

METHODS = ("cmr", "libra", "metis", "kahypar", "random")
EFFORTS = ("fast", "normal", "best")
ORDERS = ("shuffled", "stored")
DIRECTIONS = ("stored", "both", "reversed")
SELF_LOOPS = ("keep", "add", "remove")
ARC_ORDERS = ("listed", "sorted", "other")  # of the arcs of an undirected source: see GraphFields.arc_order
NORMALIZE_FEATS = ("none", "row")
MERGES = ("none", "sum", "mean", "max")
MOST_PARTS = 2**15 - 1  # a part id is an int16


_setting = partial(option, panel="Cut")


@documented
@dataclass(frozen=True)
class CutConfig:
    """Which edges a graph's partition is made of, and how they are cut. `check` refuses what no cut can be.

    Notes:
        "fast" makes 3 V-cycles for up to 5 % more copies beyond the first than "normal" with 8, "best" makes 24 for up
        to 4 % fewer (on five real graphs; on larger ones with clusters "fast" up to half more). `memory` is bytes, or
        text as "8GB"; `effort` makes no difference on disk.

    Example:
        >>> manifest = dg.partition_graph(data, 2, "two", dg.CutConfig("libra", seed=1))
        >>> manifest["num_parts"], manifest["num_nodes"]
        (2, 60)
    """

    method: str = _setting("cmr", "How edges are given to parts.", choices=METHODS)
    refine: bool = _setting(False, "Move edges and borders afterwards while that saves copies (cmr always does).")
    seed: int = _setting(0, "Of the shuffled stream, of generated graphs and of a link split.")
    direction: str = _setting("stored", "Direction of edges; both makes the graph bidirected.", choices=DIRECTIONS)
    self_loops: str = _setting(
        "keep", "Self-loops; add gives each vertex exactly one.", choices=SELF_LOOPS, title="choice for self-loops"
    )
    order: str = _setting("shuffled", "Order in which libra reads the edges.", choices=ORDERS)
    capacities: Sequence[float] | None = _setting(
        None, "Relative speeds of the ranks, such as 2,1,1.", default_text="all equal"
    )
    normalize_feats: str = _setting(
        "none", "row: each vertex's features divided by their sum.", choices=NORMALIZE_FEATS
    )
    memory: str | int | None = _setting(
        None, "Most memory, as 8GB: cmr works on disk where it needs more (text and generated graphs count)."
    )
    split: str | None = _setting(
        None, "Deal out the labelled vertices at random: shares of train, valid and test, such as 0.6,0.2,0.2."
    )
    renumber: bool = _setting(
        False, "Ids of an edge list are names, or have gaps: vertices are 0 to N-1 in their order; names are kept."
    )
    merge: str = _setting(
        "none", "Make one of double edges: of their weights and features the sum, mean or max.", choices=MERGES
    )
    link_split: str | None = _setting(
        None, "Hold out these shares of the edges for validation and test of link prediction, such as 0.05,0.1."
    )
    clusters: bool = _setting(False, "Keep an order of vertices by clusters too: some ways to train need it.")
    groups: int = _setting(1, "Groups of parts (machines) that the graph is cut between first.")
    effort: str = _setting(
        "normal", "How long a cut is improved: fast, normal, or best (some minutes for fewest copies).", choices=EFFORTS
    )

    @property
    def refined(self) -> bool:
        """Whether edges are moved after the first assignment."""
        return bool(self.refine) or self.method == "cmr"

    @property
    def uses_effort(self) -> bool:
        return uses_effort(self.method, self.refine)

    def check(self) -> CutConfig:
        """Return self.

        Raises: InputError for the first setting that is none. Whether groups and capacities fit the number of parts is
            for `check_parts` and `part_shares`.
        """
        check_values(self)
        if not _is_whole(self.seed) or not 0 <= self.seed < 2**63:
            raise InputError(f"the seed must be a whole number from 0 to 2**63 - 1, not {self.seed!r}")
        check_together(**options_of(self))
        return self

    def check_parts(self, num_parts: int) -> CutConfig:
        """Return self; raise `InputError` unless the graph can be cut into the parts, in these groups."""
        if not _is_whole(num_parts) or not 1 <= num_parts <= MOST_PARTS:
            raise InputError(f"the number of parts must be a whole number from 1 to {MOST_PARTS}, not {num_parts!r}")
        if not _is_whole(self.groups) or self.groups < 1 or num_parts % self.groups:
            raise InputError(f"the number of groups must divide {num_parts} parts, not be {self.groups!r}")
        return self.check()

    def manifest(self) -> dict[str, Any]:
        """What `partition.json` says of how the cut was found."""
        how: dict[str, Any] = {"method": self.method, "seed": int(self.seed), "order": self.order}
        for name in ("link_split", "merge", "split", "normalize_feats", "effort"):
            if getattr(self, name) != getattr(CutConfig, name):
                how[name] = str(getattr(self, name))
        return how | {"refined": self.refined, "groups": int(self.groups)}


# All that edges alone need.
CUT_OPTIONS = ("method", "seed", "order", "refine", "capacities", "groups", "effort")


def make_config(method: str | CutConfig, options: Mapping[str, Any], known: Collection[str] | None = None) -> CutConfig:
    """The configuration that a function with `method` and `**options` was called with, not yet checked.

    Args: method: the name of a method, or a whole configuration that the options change; known: the options that the
        function takes (default: all fields).
    """
    check_names(options, [each.name for each in fields(CutConfig)] if known is None else known)
    config = method if isinstance(method, CutConfig) else CutConfig(method=method)
    return replace(config, **options)


def check_names(options: Iterable[str], known: Collection[str]) -> None:
    """Raise InputError for the first option that is not known, naming the nearest one."""
    for name in options:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1, cutoff=0.5)
            hint = f"did you mean {near[0]!r}?" if near else f"choose from {', '.join(known)}"
            raise InputError(f"unknown option {name!r}: {hint}")


def _is_whole(value: object) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)
