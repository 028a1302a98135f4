"""What operators and layers need of a graph. `DistGraph` and `CopyGraph` have all of it; a test may make less.

    MaskKeys      keys of random masks                         dropout, activation
    Exchanges     how messages travel, and whether exactly     halo, partials, sums, choice of a plan
    GraphView     both, and aggregation over local arcs        every operator

Layers that read labels, features or types of a graph take `distgnn.nn.protocol.DataGraph`.

Legend: O owned rows, V the model's rows (O, or with update on copies owned and halo rows), A local arcs.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
import torch

from distgnn.comm import Exchange, Transport
from distgnn.comm.row_requests import VertexOwners
from distgnn.kernels import Tuning
from distgnn.ops.aggregation.aggregate_copies import CopyAggregator
from distgnn.ops.aggregation.aggregator import Aggregator, Site
from distgnn.ops.aggregation.row_scale import RowScale
from distgnn.ops.buffers import Buffers
from distgnn.ops.edges.local_arcs import LocalArcs
from distgnn.partition import LocalGraph


class MaskKeys(Protocol):
    """What keys a random mask: the same vertex draws the same mask on any rank and number of ranks.

    Example:
        >>> graph.seed, len(graph.row_ids)
        (0, 60)
    """

    @property
    def seed(self) -> int:
        """Of the run."""

    @property
    def step(self) -> int:
        """The training step."""

    @property
    def row_ids(self) -> np.ndarray:
        """Global vertex id of each of the model's rows, int64 [V]."""

    def next_call(self, site: int) -> int:
        """How often this dropout site drew in this step before."""

    def draws(self) -> tuple:
        """How far this step's masks and exchanges have been numbered."""

    def set_draws(self, draws: tuple) -> None:
        """Go back to what `draws` returned: the same masks are drawn again."""


class Exchanges(Protocol):
    """How messages travel, and whether those of a training step are exact.

    Example:
        >>> graph.num_ranks, graph.exchanges_exactly
        (1, True)
    """

    @property
    def num_ranks(self) -> int:
        """Parts of the graph."""

    @property
    def transport(self) -> Transport:
        """Sends and receives, and counts them; `transport.comm` has one rank per part."""

    @property
    def exchange(self) -> Exchange:
        """The exact exchange: broadcast to source halos, reduce from target halos."""

    @property
    def transposed_exchange(self) -> Exchange:
        """Its transpose: broadcast to target halos, reduce from source halos."""

    @property
    def exchanges_exactly(self) -> bool:
        """Are training exchanges synchronous and whole, so that one may be repeated?"""

    @property
    def aggregates_exactly(self) -> bool:
        """Do training steps use rows of this step everywhere, to the bit?"""

    @property
    def waits_for_rows(self) -> bool:
        """Does an aggregation of a training step wait for messages?"""

    def next_site(self) -> Site | None:
        """The number of the next exchange of this training step; None where it is exact."""


class KeptAggregations(Protocol):
    """Aggregations of rows that never change (`ConstantRows`)."""

    def get(
        self,
        rows: torch.Tensor,
        edge_weight: torch.Tensor | None,
        scales: tuple,
        compute: Callable[[bool], torch.Tensor],
        loops: object = None,
    ) -> torch.Tensor:
        """The kept result, or what `compute(will it be kept)` gives; loops: a `SelfLoops`. Collective: yes."""

    def holds(self, result: torch.Tensor) -> bool:
        """Is this memory of a kept result? This rank's answer."""


class FactorRecorder(Protocol):
    """Takes the rows around weights in a backward pass, for second-order optimisers."""

    def add(self, factors: Sequence[tuple[torch.Tensor, Any, torch.Tensor]], constant: bool = False) -> None:
        """(weight [I, D], rows that it multiplies, gradient of the rows it makes) of each weight, before anything is
        written over them; constant: the rows it multiplies need no gradient."""


class GraphView(MaskKeys, Exchanges, Protocol):
    """One rank's share of a graph, as operators see it.

    Example:
        >>> graph.num_nodes() == graph.num_owned
        True
    """

    @property
    def owners(self) -> VertexOwners:
        """The owner of each vertex. Collective: the first time."""

    @property
    def owned_ids(self) -> np.ndarray:
        """Global ids of owned rows, int64 [O]."""

    @property
    def graph_ids(self) -> torch.Tensor | None:
        """Which of many small graphs an owned vertex is in, int64 [O]."""

    @property
    def num_graphs(self) -> int:
        """Those graphs."""

    @property
    def local(self) -> LocalGraph:
        """The part: plan of the exchange, global ids of vertices and arcs."""

    @property
    def part(self) -> LocalGraph:
        """The part whose arcs are local ones: `local`, or what several ranks share."""

    @property
    def num_owned(self) -> int:
        """O."""

    @property
    def num_rows(self) -> int:
        """V."""

    @property
    def num_global_nodes(self) -> int:
        """Vertices of the whole graph."""

    def num_edges(self) -> int:
        """A."""

    def in_degrees(self) -> torch.Tensor:
        """In-degrees in the whole graph, int64 [V]."""

    def degree_scale(self, kind: str, power: float, offset: int = 0) -> RowScale:
        """Factors max(degree + offset, 1) ** power in the whole graph; `kind` is "in" or "out"."""

    @property
    def forward_arcs(self) -> Aggregator | CopyAggregator:
        """Aggregation over the arcs of all ranks. Collective: each call."""

    def backward_arcs(self, weighted: bool) -> Aggregator | CopyAggregator:
        """The same over transposed arcs; weighted: with edge weights."""

    @property
    def local_arcs(self) -> LocalArcs:
        """Arcs one by one, for messages that are made on arcs."""

    @property
    def transform_first(self) -> bool:
        """May a layer multiply before it aggregates?"""

    def narrows(self, in_feats: int, out_feats: int) -> bool:
        """Does a layer of these widths multiply before it aggregates?"""

    def is_input(self, rows: torch.Tensor) -> bool:
        """Are these the graph's own features, whose aggregation is kept? Collective: yes."""

    @property
    def constants(self) -> KeptAggregations:
        """Aggregations that are kept."""

    @property
    def factor_recorder(self) -> FactorRecorder | None:
        """What a backward pass tells its rows; None where nobody asks."""

    @property
    def buffers(self) -> Buffers:
        """Where large results are made."""

    @property
    def tuning(self) -> Tuning:
        """What was measured for this part on this machine: whose products, sums by blocks or not."""
