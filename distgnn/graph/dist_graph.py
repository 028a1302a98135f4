"""DistGraph: what a model sees of the graph. It has one rank's owned rows; everything global is kept global.

Legend: O owned rows, V local rows, A local arcs, S / T source and target halos, D width.
"""

from functools import cached_property

import numpy as np
import torch
from mpi4py import MPI

from distgnn.comm import Exchange, Transport
from distgnn.config import Algorithm
from distgnn.config.schedule import Schedule
from distgnn.graph.frame import Frame
from distgnn.graph.own_loop import guard_steps
from distgnn.graph.part_arrays import as_tensor, dense_rows, leave_on_disk
from distgnn.graph.training_exchanges import Scheduled
from distgnn.interop.dgl.api import DGLFace
from distgnn.ops.aggregation.aggregator import Aggregator, Arcs, RowScale
from distgnn.ops.aggregation.constant_rows import ConstantRows
from distgnn.ops.buffers import Buffers
from distgnn.ops.dense.sparse_rows import SparseRows, worth_sparse
from distgnn.ops.edges.local_arcs import LocalArcs
from distgnn.partition import ExchangePlan, LocalGraph

DTYPES = {"float32": torch.float32, "float64": torch.float64, "bfloat16": torch.bfloat16}


class DistGraph(DGLFace, Scheduled):
    """One rank's share of a graph, answering to the message-passing part of `dgl.DGLGraph`.

    Models see owned rows only: `num_nodes()` is O, and every vertex of the whole graph is owned by one rank.
    `update_all` with DGL's built-in functions aggregates over the arcs of the whole graph.

    Collective: the constructor, and every aggregation forward and backward.

    Args:
        local: this rank's part; its `graph` section has num_classes, multilabel and counts of labelled rows.
        comm: communicator with one rank per part; duplicated.
        algorithm: "cd-0" (synchronous, exact) or "cd-r" (rows count r epochs after they were sent).
        dtype: "float32", "float64" or "bfloat16": of features, activations and messages; weights and sums of bfloat16
            rows are float32.
        seed: of dropout masks.
        cache_first: keep the aggregation of rows that never change.
        transform_first: where a layer narrows, multiply before aggregating, forward and backward.
        sparse_feats: keep features that are stored sparse as `ops.SparseRows`, where that is cheaper. Layers of
            `distgnn.nn`, `torch.nn.Linear` and `@` multiply them as they are; what else needs them gets dense rows.
        debug: agree on every exchange before it starts.
        schedule: the fields of `Schedule` (warmup_epochs, wire, wire_backward, remote_rule, smooth, adaptive,
            error_feedback). They are about training steps: evaluation is always synchronous and sends whole rows.

    Attributes:
        feats [O, D], labels [O] int64 or [O, C], train_mask / valid_mask / test_mask [O] bool, owned_ids [O]
        (numpy int64, global vertex ids), node_types [O] or None, seed and step (of the random masks; the trainer moves
        the step).
    """

    update = "owners"

    def __init__(
        self,
        local: LocalGraph,
        comm: MPI.Comm,
        *,
        algorithm: str = "cd-0",
        dtype: str = "float32",
        seed: int = 0,
        cache_first: bool = True,
        transform_first: bool = True,
        debug: bool = False,
        sparse_feats: bool = True,
        **schedule,
    ):
        self.local, self.info = local, local.graph
        settings = {"algorithm": algorithm, "dtype": dtype, "seed": seed, "cache_first": cache_first, "debug": debug}
        settings |= {"transform_first": transform_first, "sparse_feats": sparse_feats}
        self._settings, self.transform_first = settings | schedule, transform_first
        self.dtype = DTYPES[dtype]
        self.algorithm, self.schedule = Algorithm.parse(algorithm), Schedule(**schedule)
        self.schedule.check(self.algorithm, self.update)
        self.seed = seed
        self.step = 0
        self.num_owned = local.num_owned
        self.num_rows = self._count_rows()
        self.row_ids = np.ascontiguousarray(local.global_ids[: self.num_rows])
        self.owned_ids = np.ascontiguousarray(local.global_ids[: local.num_owned])
        self.transport = Transport(comm, debug)
        self.comm = self.transport.comm
        self.rank, self.num_ranks = self.comm.rank, self.comm.size
        if self.num_ranks > 1:
            guard_steps(DistGraph)
        self.plan = self._make_plan()
        self.exchange = Exchange(self.plan, self.transport)
        self.transposed_exchange = Exchange(self.plan.transposed(), self.transport)
        self._delayed = self._delayed_exchanges()
        self.forward_arcs = self._make_forward_arcs()
        self._backward_arcs: dict[bool, Aggregator] = {}
        self._degree_scales: dict[tuple, RowScale] = {}
        self._zero_in_degree: bool | None = None
        self._frames = {"node": Frame(self.num_rows, "vertex"), "edge": Frame(self.num_edges(), "arc")}
        self.feats = self._attach_feats(sparse_feats)
        self._attach_data()
        self.buffers = Buffers()
        self.constants = ConstantRows(self.comm, cache_first)
        if self.feats is not None and not isinstance(self.feats, SparseRows):
            self.constants.expect(self.feats)

    def with_part(self, local: LocalGraph):
        """A graph of the same kind and settings over another part. Collective: yes."""
        return type(self)(local, self.comm, **self._settings)

    def _count_rows(self) -> int:
        """Rows that the model sees."""
        return self.local.num_owned

    def _make_plan(self) -> ExchangePlan:
        return self.local.plan

    def _make_forward_arcs(self) -> Aggregator:
        return Aggregator(Arcs.of(self.local), self.exchange, self._delayed[0])

    def _attach_feats(self, sparse: bool) -> torch.Tensor | SparseRows | None:
        """Features as a tensor; or, where that is asked for, stored sparse and cheaper to multiply, as sparse rows."""
        feats = self.local.feats
        if sparse and hasattr(feats, "toarray") and self.update == "owners" and worth_sparse(self.comm, feats):
            return SparseRows(feats, self.dtype, on_dense=lambda rows: self.constants.expect(rows))
        rows = dense_rows(feats, self.dtype)
        leave_on_disk(feats)
        return self.rows_from_owned(rows)

    def _attach_data(self) -> None:
        local = self.local
        kind = self.weight_dtype if self.multilabel else torch.int64
        self.labels = self._all_rows(as_tensor(local.labels, kind), -1)
        self.train_mask = self._all_rows(as_tensor(local.train_mask, torch.bool), False)
        self.valid_mask = self._all_rows(as_tensor(local.valid_mask, torch.bool), False)
        self.test_mask = self._all_rows(as_tensor(local.test_mask, torch.bool), False)
        self.edge_weight = as_tensor(local.edge_weight, self.weight_dtype)
        self.node_types = as_tensor(local.node_types, torch.int64)
        named = {
            "feat": self.feats,
            "label": self.labels,
            "train_mask": self.train_mask,
        }
        named |= {"val_mask": self.valid_mask, "test_mask": self.test_mask}
        named["ntype"] = self._all_rows(self.node_types, 0)
        self.ndata.update({name: column for name, column in named.items() if column is not None})
        if self.edge_weight is not None:
            self.edata["weight"] = self.edge_weight
        if local.edge_feats is not None:  # stays mapped: it may be the largest array of all
            self.edata["feat"] = torch.from_numpy(local.edge_feats).to(self.weight_dtype)
        if local.edge_types is not None:
            self.edata["etype"] = as_tensor(local.edge_types, torch.int64)

    def _all_rows(self, column: torch.Tensor | None, fill) -> torch.Tensor | None:
        """A column over owned rows as one over the model's rows; `fill` is for rows that are not owned."""
        return column

    def rows_from_owned(self, rows: torch.Tensor | None) -> torch.Tensor | None:
        """The model's rows from owned ones: the same; with update on copies halo copies get theirs. Collective."""
        return rows

    # --- randomness ------------------------------------------------------------------------------------------

    @property
    def step(self) -> int:
        """The training step, part of the key of every random mask. The trainer moves it."""
        return self._step

    @step.setter
    def step(self, step: int) -> None:
        self._step = step
        self._num_sites = 0
        self._calls_of_site: dict[int, int] = {}

    def next_call(self, site: int) -> int:
        """How often this site drew in this step before: a second draw, or a loop that never moves the step, differs."""
        call = self._calls_of_site.get(site, 0)
        self._calls_of_site[site] = call + 1
        return call

    def draws(self) -> tuple:
        """How far this step's masks and exchanges have been numbered; `set_draws` goes back to it."""
        return self._num_sites, dict(self._calls_of_site)

    def set_draws(self, draws: tuple) -> None:
        self._num_sites, self._calls_of_site = draws[0], dict(draws[1])

    @property
    def weight_dtype(self) -> torch.dtype:
        """Of parameters, edge weights and sums: float32 where rows are bfloat16."""
        return torch.float32 if self.dtype == torch.bfloat16 else self.dtype

    # --- sizes -----------------------------------------------------------------------------------------------

    @property
    def num_feats(self) -> int:
        """Width of the input features (0 without features)."""
        return 0 if self.feats is None else self.feats.shape[1]

    @property
    def num_classes(self) -> int:
        """Classes, or tasks of a multi-label graph."""
        return self.info["num_classes"]

    @property
    def multilabel(self) -> bool:
        return bool(self.info["multilabel"])

    @property
    def num_edge_feats(self) -> int:
        """Width of `edata["feat"]`, the features of arcs (0 without any)."""
        return self.info.get("num_edge_feats", 0)

    @property
    def num_relations(self) -> int:
        """Relations in `edata["etype"]` (0 without edge types)."""
        return self.info.get("num_relations", 0)

    @property
    def num_node_types(self) -> int:
        """Vertex types in `ndata["ntype"]` (0 where they are not told apart)."""
        return self.info.get("num_node_types", 0)

    @property
    def num_global_nodes(self) -> int:
        """Vertices of the whole graph, over all ranks."""
        return self.local.num_nodes

    def num_nodes(self) -> int:
        """The rows a model sees on this rank: one per owned vertex."""
        return self.num_rows

    number_of_nodes = num_src_nodes = num_dst_nodes = number_of_src_nodes = number_of_dst_nodes = num_nodes

    def num_edges(self) -> int:
        """Local arcs of this rank."""
        return self.forward_arcs.num_arcs

    number_of_edges = num_edges

    # --- degrees: always those of the whole graph ------------------------------------------------------------

    def in_degrees(self) -> torch.Tensor:
        """In-degrees of owned vertices in the whole graph, int64 [O]."""
        return torch.from_numpy(self.local.in_degrees[: self.num_rows].astype(np.int64))

    def out_degrees(self) -> torch.Tensor:
        """Out-degrees of owned vertices in the whole graph, int64 [O]."""
        return torch.from_numpy(self.local.out_degrees[: self.num_rows].astype(np.int64))

    def degree_scale(self, kind: str, power: float, offset: int = 0) -> RowScale:
        """Factors max(degree + offset, 1) ** power of every local vertex; `kind` is "in" or "out". Kept."""
        key = (kind, power, offset)
        if key not in self._degree_scales:
            degrees = self.local.in_degrees if kind == "in" else self.local.out_degrees
            factors, local = self._factors(degrees, power, offset), self.local
            owned, sources = factors[: self.num_owned], factors[local.source_halo_rows]
            self._degree_scales[key] = RowScale(owned, sources, factors[local.target_halo_rows])
        return self._degree_scales[key]

    def _factors(self, degrees: np.ndarray, power: float, offset: int) -> np.ndarray:
        factors = np.maximum(degrees.astype(np.float64) + offset, 1) ** power
        return factors.astype(np.float64 if self.dtype == torch.float64 else np.float32)

    def has_zero_in_degree(self) -> bool:
        """Is there a vertex without in-arcs anywhere? Collective: the first time."""
        if self._zero_in_degree is None:
            here = bool((self.local.in_degrees[: self.num_owned] == 0).any())
            self._zero_in_degree = self.comm.allreduce(here, op=MPI.LOR)
        return self._zero_in_degree

    # --- aggregation -----------------------------------------------------------------------------------------

    def backward_arcs(self, weighted: bool) -> Aggregator:
        """The aggregator over transposed arcs, made when first needed; with edge weights it keeps the arc map."""
        if weighted not in self._backward_arcs:
            local = self.local
            arcs = self.forward_arcs.arcs.transposed(local.num_owned, local.num_source_halos, local.symmetric, weighted)
            self._backward_arcs[weighted] = Aggregator(arcs, self.transposed_exchange, self._delayed[1])
        return self._backward_arcs[weighted]

    def is_input(self, rows: torch.Tensor) -> bool:
        """Are these the graph's own features, whose aggregation is kept? Collective: yes."""
        return self.constants.is_expected(rows)

    @cached_property
    def local_arcs(self) -> LocalArcs:
        """Arcs one by one, for messages that are made on arcs."""
        return LocalArcs.of(self.local)

    def num_labelled(self, split: str) -> int:
        """Labelled rows of "train", "valid" or "test" over all ranks."""
        return self.info[split]
