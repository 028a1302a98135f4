"""DistGraph: what a model sees of the graph. It has one rank's owned rows; everything global is kept global.

Legend: O owned rows, A local arcs, D width.

    random_keys  RandomKeys           seed, step, and how often a step has drawn: the key of every random mask
    exchanges    TrainingExchanges    exact and delayed exchanges, and what a checkpoint needs of them
    DGLInterface (base class)         columns by name and DGL's message passing
    PyGInterface (base class)         the same columns by PyG's names, and `edge_index`

Graphs of extras replace what is said here of rows and aggregation.

Over 300 lines: each member is a documented line of the interface that models see.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property, partial
from operator import attrgetter
from typing import Any

import numpy as np
import torch
from mpi4py import MPI

from distgnn.comm import Exchange, Transport, sum_over_ranks
from distgnn.comm.plans import VertexOwners
from distgnn.config import Algorithm, check_choice
from distgnn.config.schedule import Schedule
from distgnn.graph.edge_pairs import EdgePairs, edge_pairs
from distgnn.graph.feat_norm import FeatNorm
from distgnn.graph.global_values import gather_rows, global_mean
from distgnn.graph.memory.ledger import MemoryLedger, MemoryReport, blocks_of
from distgnn.graph.part_arrays import arc_columns, as_tensor, fitted, input_rows, vertex_columns
from distgnn.graph.random_keys import DrawsByKeys, RandomKeys
from distgnn.graph.training_exchanges import TrainingExchanges
from distgnn.interop.dgl.api import DGLInterface, Frame, Frames
from distgnn.interop.pyg.api import PyGInterface, register
from distgnn.kernels import Tuning
from distgnn.ops.aggregation.aggregator import Aggregator, Arcs, RowScale, Site
from distgnn.ops.aggregation.constant_rows import ConstantRows
from distgnn.ops.buffers import Buffers
from distgnn.ops.edges.on_arcs import LocalArcs
from distgnn.ops.own_loop import refuse_unsummed_steps
from distgnn.ops.remote_rows import RowLookup
from distgnn.ops.rowwise.sparse_rows import SparseRows
from distgnn.ops.sums import min_over_ranks
from distgnn.partition import ExchangePlan, LocalGraph

DTYPES = {"float32": torch.float32, "float64": torch.float64, "bfloat16": torch.bfloat16}


def dtype_name(dtype: str | torch.dtype) -> str:
    """The name of a dtype of rows. Raises: InputError for any but "float32", "float64", "bfloat16" or torch's."""
    name = str(dtype).removeprefix("torch.")
    check_choice("dtype", name, tuple(DTYPES))
    return name


def _shown(path: str, doc: str) -> Any:
    return property(attrgetter(path), doc=doc)


def _size(name: str, doc: str) -> Any:
    return property(lambda graph: graph.info.get(name, 0), doc=doc)


class DistGraph(DGLInterface, PyGInterface, DrawsByKeys):
    """One rank's share of a graph, answering to the message-passing part of `dgl.DGLGraph`.

    Models see owned rows only: `num_nodes()` is O, and every vertex of the whole graph is owned by one rank.

    Collective: the constructor, and every aggregation forward and backward.

    Args:
        local: this rank's part; its `graph` section has num_classes, multilabel and counts of labelled rows.
        comm: communicator with one rank per part; duplicated.
        algorithm: "cd-0" (synchronous, exact) or "cd-r" (rows count r epochs after they were sent).
        dtype: "float32", "float64" or "bfloat16", or torch's dtype of that name: of features, activations and
            messages; weights and sums of bfloat16 rows are float32.
        seed: of dropout masks.
        cache_first: keep the aggregation of rows that never change.
        transform_first: where a layer narrows, multiply before aggregating, forward and backward.
        sparse_feats: keep features that are stored sparse as `ops.SparseRows`, where that is cheaper. Layers of
            `distgnn.nn`, `torch.nn.Linear` and `@` multiply them as they are; what else needs them gets dense rows.
        feat_norm: what is done to features: "none", "center", "standardize", "row-l2", or steps such as
            "row-l2,center"; or the `feat_norm` of another graph, with its statistics.
        inductive: take the statistics for `feat_norm` of training vertices only, for inductive training.
        debug: agree on every exchange before it starts.
        tuning: what `load` measured for this part; None: the defaults.
        offload: a folder where features, and rows that wait for the backward pass, live in files; None: in memory.
        schedule: the fields of `Schedule` (warmup_epochs, wire, wire_backward, late_row_average). They
            are about training steps: evaluation is always synchronous and sends whole rows.

    Attributes:
        feats [O, D], labels [O] int64 or [O, C], train_mask / valid_mask / test_mask [O] bool, owned_ids [O]
        (numpy int64, global vertex ids), node_types [O], node_values [O] or [O, T] as they were given, and graph_ids
        [O] int64 or None, seed and step (the trainer moves it), feat_norm (`FeatNorm` or None).

    Example:
        >>> graph
        DistGraph(part 0 of 1, num_nodes=60 of 60, num_feats=8, num_classes=4, dtype=torch.float32,
        algorithm='cd-0', update='owners')
        >>> graph.num_nodes(), graph.num_edges(), graph.feats.shape
        (60, 290, torch.Size([60, 8]))
        >>> graph.in_degrees().sum().item()
        290
    """

    update: str = "owners"  # who updates a vertex
    sends_in_training: bool = True
    late_rows_stay: bool = True  # what arrived last stays in use

    def __init__(
        self,
        local: LocalGraph,
        comm: MPI.Comm,
        *,
        algorithm: str = "cd-0",
        dtype: str | torch.dtype = "float32",
        seed: int = 0,
        cache_first: bool = True,
        transform_first: bool = True,
        debug: bool = False,
        sparse_feats: bool = True,
        feat_norm: str | FeatNorm = "none",
        inductive: bool = False,
        tuning: Tuning | None = None,
        offload: str | None = None,
        **schedule: Any,
    ):
        dtype = dtype_name(dtype)
        settings = {"algorithm": algorithm, "dtype": dtype, "seed": seed, "cache_first": cache_first, "debug": debug}
        settings |= {"transform_first": transform_first, "sparse_feats": sparse_feats, "tuning": tuning}
        settings |= {"offload": offload}
        self.feat_norm = fitted(feat_norm, local, comm, inductive)
        settings |= {"feat_norm": self.feat_norm or "none", "inductive": inductive}
        self._settings: dict[str, Any] = settings | schedule
        self.plain = self
        self.local, self.info, self.transform_first = local, local.graph, transform_first
        self.dtype = DTYPES[dtype]
        self.tuning = tuning or Tuning()
        self.algorithm, self.schedule = Algorithm.parse(algorithm), Schedule(**schedule)
        self.schedule.check(self.algorithm)
        self.random_keys = RandomKeys(seed)
        self.transport = Transport(comm, debug)
        self.transport.in_pieces = comm.size > 1 and comm.allreduce(offload is not None)
        self.comm, self.rank = self.transport.comm, self.transport.rank
        on_owners = self.update == "owners"
        self.plan = self.plan_of(local)
        self.exchanges = TrainingExchanges(self, self.exact_exchanges())
        self.num_owned, self.num_rows = local.num_owned, local.num_owned if on_owners else local.num_rows
        self.row_ids = np.ascontiguousarray(local.global_ids[: self.num_rows])
        self.owned_ids = np.ascontiguousarray(local.global_ids[: local.num_owned])
        frames = Frames(Frame(self.num_rows, "vertex"), Frame(self.forward_arcs.num_arcs, "arc"))
        super().__init__(frames, self.transport.num_ranks)
        if self.num_ranks > 1:
            refuse_unsummed_steps(DistGraph)
        register(self)
        self._scales: dict[tuple[str, float, int], RowScale] = {}
        self._backward_arcs: dict[bool, Any] = {}
        self.buffers, self.constants = Buffers(offload), ConstantRows(self.comm, cache_first)
        self._attach_feats(local, sparse_feats and on_owners)
        self._attach_columns(local)
        self.factor_recorder: Any = None  # of a second-order optimiser
        outside = None if self.buffers.disk is None else self.buffers.holds
        self.ledger = MemoryLedger(partial(blocks_of, self), self.buffers.idle_bytes, outside)

    def exact_exchanges(self) -> tuple[Exchange, Exchange]:
        """Forward and backward, by plain messages between all ranks."""
        return Exchange(self.plan, self.transport), Exchange(self.plan.transposed(), self.transport)

    def _attach_feats(self, local: LocalGraph, sparse: bool) -> None:
        empty = None if self.buffers.disk is None else self.buffers.empty
        how: dict[str, Any] = {"sparse": sparse, "norm": self.feat_norm, "empty": empty}
        feats = input_rows(self.transport, local.feats, self.dtype, **how)
        self.feats = self.rows_from_owned(feats) if isinstance(feats, torch.Tensor) else feats
        self.buffers.send_out()
        if isinstance(self.feats, SparseRows):
            self.feats.on_dense = self.constants.expect
        elif self.feats is not None:
            self.constants.expect(self.feats)

    def _attach_columns(self, local: LocalGraph) -> None:
        columns = vertex_columns(local, self._filled, self.weight_dtype if self.multilabel else torch.int64)
        self.labels: Any = columns.get("label")
        masks: Any = [columns.get(name) for name in ("train_mask", "val_mask", "test_mask")]
        self.train_mask, self.valid_mask, self.test_mask = masks
        self.node_types = as_tensor(local.node_types, torch.int64)
        self.node_values = as_tensor(local.node_values, self.weight_dtype)
        if self.info.get("flat_values"):
            self.node_values = self.node_values[:, 0].contiguous()
        self.graph_ids = as_tensor(local.graph_ids, torch.int64)
        if isinstance(self.feats, torch.Tensor):
            self.ndata["feat"] = self.feats
        self.ndata.update(columns)
        self.edata.update(arc_columns(self.local, self.weight_dtype))
        self.edge_weight = self.edata.get("weight")

    def __repr__(self) -> str:
        words = [f"part {self.local.part_id} of {self.local.num_parts}"]
        words += [f"num_nodes={self.num_owned} of {self.num_global_nodes}"]
        words += [f"num_feats={self.num_feats}", f"num_classes={self.num_classes}", f"dtype={self.dtype}"]
        return f"{type(self).__name__}({', '.join(words)}, algorithm={self.algorithm.name!r}, update={self.update!r})"

    def __deepcopy__(self, memo: dict[str, Any]) -> "DistGraph":
        """Itself: a copy of a model runs on the graph of the model."""
        return self

    def with_part(self, local: LocalGraph) -> "DistGraph":
        """A graph of the same kind and settings over another part. Collective: yes."""
        return type(self)(local, self.comm, **self._settings)

    # --- exchanges: see TrainingExchanges --------------------------------------------------------------------

    @staticmethod
    def plan_of(local: LocalGraph) -> ExchangePlan:
        """Who sends which rows to whom in a forward aggregation."""
        return local.plan

    @staticmethod
    def reduced_halos(part: LocalGraph, direction: int) -> np.ndarray:
        """Local rows of the halos whose partial sums a reduce sends, forward (0) or backward (1)."""
        return part.source_halo_rows if direction else part.target_halo_rows

    @property
    def exchange(self) -> Exchange:
        """The exact exchange of halo rows, forward."""
        return self.exchanges.exact[0]

    @property
    def transposed_exchange(self) -> Exchange:
        """The exact exchange of halo rows, backward."""
        return self.exchanges.exact[1]

    exchanges_exactly: bool = _shown(
        "exchanges.exchanges_exactly", "Are training exchanges synchronous and whole, so that one may be repeated?"
    )
    aggregates_exactly: bool = _shown(
        "exchanges.aggregates_exactly", "Do training steps use rows of this step everywhere, to the bit?"
    )
    waits_for_rows: bool = _shown("exchanges.waits_for_rows", "Does an aggregation in training wait for messages?")

    def next_site(self) -> Site | None:
        """Where in the training step the next exchange stands, under a delayed algorithm; None: exact."""
        return self.exchanges.next_site()

    def drain(self) -> None:
        """Wait until no message of this rank is in flight. Collective: yes."""
        self.exchanges.drain()

    def exchange_bytes(self) -> int:
        """Memory of this rank for messages and held rows."""
        return self.exchanges.buffer_bytes()

    def memory_report(self) -> MemoryReport:
        """Memory of each rank by name: at the peak of a run with `memory_report` set, else now. Collective: yes."""
        return self.ledger.report(self.comm)

    # --- sizes -----------------------------------------------------------------------------------------------

    @property
    def weight_dtype(self) -> torch.dtype:
        """Of parameters, edge weights and sums: float32 where rows are bfloat16."""
        return torch.float32 if self.dtype == torch.bfloat16 else self.dtype

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

    num_edge_feats: int = _size("num_edge_feats", 'Width of `edata["feat"]`, the features of arcs (0 without any).')
    num_relations: int = _size("num_relations", 'Relations in `edata["etype"]` (0 without edge types).')
    num_node_types: int = _size("num_node_types", 'Vertex types in `ndata["ntype"]` (0 where they are not told apart).')
    num_values: int = _size("num_values", "Values of a vertex that a regression predicts (0 without any).")
    num_graphs: int = _size("num_graphs", "Small graphs that `graph_ids` tells apart (0 without them).")

    num_global_nodes: int = _shown("local.num_nodes", "Vertices of the whole graph, over all ranks.")

    def num_at(self, role: str) -> int:
        """Owned rows at one end of arcs, "source" or "target": O at both, but in a `Relation`."""
        return self.local.num_at(role)

    def space_at(self, role: str) -> Any:
        """Of rows of all ranks: the vertices at one end of arcs."""
        return self.__dict__["vertex_space"]

    def ids_at(self, role: str) -> np.ndarray:
        """Places, among the vertices of all ranks, of the copies at one end of local arcs: [O + S or T]."""
        local = self.local
        halos = local.source_halo_rows if role == "source" else local.target_halo_rows
        return np.concatenate([local.global_ids[: local.num_owned], local.global_ids[halos]])

    # --- degrees: always in the whole graph ------------------------------------------------------------

    def in_degrees(self) -> torch.Tensor:
        """In-degrees of owned vertices in the whole graph, int64 [O]."""
        return torch.from_numpy(self.local.in_degrees[: self.num_rows].astype(np.int64))

    def out_degrees(self) -> torch.Tensor:
        """Out-degrees of owned vertices in the whole graph, int64 [O]."""
        return torch.from_numpy(self.local.out_degrees[: self.num_rows].astype(np.int64))

    def degree_scale(self, kind: str, power: float, offset: int = 0) -> RowScale:
        """Factors max(degree + offset, 1) ** power of every local vertex; `kind` is "in" or "out". Kept."""
        dtype = np.float64 if self.dtype == torch.float64 else np.float32

        def factors(degrees: np.ndarray) -> np.ndarray:
            return (np.maximum(degrees.astype(np.float64) + offset, 1) ** power).astype(dtype)

        key = (kind, power, offset)
        if key not in self._scales:
            self._scales[key] = self._scale(kind, factors)
        return self._scales[key]

    @cached_property
    def _has_zero_in_degree(self) -> bool:
        here = (self.local.in_degrees[: self.num_owned] == 0).any()
        return min_over_ranks(self.comm, int(not here)) == 0

    def has_zero_in_degree(self) -> bool:
        """Is there a vertex without in-arcs anywhere? Collective: the first time."""
        return self._has_zero_in_degree

    # --- the model's rows, and aggregation over them ------------------------------------------------------------

    def _scale(self, kind: str, factors: Callable[[np.ndarray], np.ndarray]) -> RowScale:
        """`factors` of the "in" or "out" degrees, wherever an aggregation meets a vertex."""
        part = self.local
        of_all = factors(part.in_degrees if kind == "in" else part.out_degrees)
        return RowScale(of_all[: part.num_owned], of_all[part.source_halo_rows], of_all[part.target_halo_rows])

    def _filled(self, column: torch.Tensor, value: int | bool) -> torch.Tensor:
        """A column over owned rows as one over the model's rows; `value` is for rows that are not owned."""
        return column

    def rows_from_owned(self, rows: torch.Tensor) -> torch.Tensor:
        """The model's rows from owned ones: the same; with update on copies halo copies get theirs. Collective."""
        return rows

    def _aggregator(self, arcs: Arcs, direction: int) -> Aggregator:
        return Aggregator(arcs, self.exchanges.exact[direction], self.exchanges.delayed[direction])

    @cached_property
    def forward_arcs(self) -> Any:
        """The aggregator over the arcs of all ranks."""
        return self._aggregator(Arcs.of(self.local, self.tuning), 0)

    def backward_arcs(self, weighted: bool) -> Any:
        """The aggregator over transposed arcs, made when first needed; with edge weights it keeps the arc map."""
        if weighted not in self._backward_arcs:
            part = self.local
            arcs = self.forward_arcs.arcs.transposed(
                part.num_at("source"), part.num_source_halos, part.symmetric, weighted
            )
            self._backward_arcs[weighted] = self._aggregator(arcs, 1)
        return self._backward_arcs[weighted]

    def narrows(self, in_feats: int, out_feats: int) -> bool:
        """Does a layer of these widths multiply before it aggregates? What travels is then the narrower row."""
        return self.transform_first and in_feats > out_feats

    def is_input(self, rows: torch.Tensor) -> bool:
        """Are these the graph's own features, whose aggregation is kept? Collective: yes."""
        return self.constants.is_expected(rows)

    @cached_property
    def local_arcs(self) -> LocalArcs:
        """Arcs one by one, for messages that are made on arcs."""
        return LocalArcs.of(self.local)

    def global_mean(self, values: torch.Tensor) -> torch.Tensor:
        """The mean over the values of all ranks; its gradient is this rank's share. Collective: see `global_values`."""
        return global_mean(self, values)

    def gather_rows(self, rows: torch.Tensor, root: int | None = 0) -> np.ndarray | None:
        """Rows of owned vertices of all ranks as a numpy array in the original order, on rank `root` (None: all).
        Collective."""
        return gather_rows(self, rows, root)

    def set_splits(self, masks: Mapping[str, np.ndarray]) -> None:
        """Train, validate and test on other vertices from now on. Collective: yes.

        Args: masks: bool [O] of "train", "valid" and "test", of vertices that have a label.
        """
        counts = sum_over_ranks(self.comm, np.array([np.count_nonzero(mask) for mask in masks.values()]))
        own: dict[str, Any] = {f"{split}_mask": mask for split, mask in masks.items()}
        section = self.info | dict(zip(masks, map(int, counts), strict=True))
        self.local, self.info = replace(self.local, graph=section, **own), section
        for split, name in zip(masks, ("train_mask", "val_mask", "test_mask"), strict=True):
            self.ndata[name] = self._filled(torch.from_numpy(masks[split]), False)
            setattr(self, f"{split}_mask", self.ndata[name])

    # --- pairs of vertices ------------------------------------------------------------------------------------

    @cached_property
    def owners(self) -> VertexOwners:
        """The owner of each vertex of the whole graph. Collective: the first time."""
        return VertexOwners(self.comm, self.owned_ids)

    def look_up(self, global_ids: np.ndarray) -> RowLookup:
        """Where rows of any vertices are, for `gather_rows_at` again and again. Collective: yes."""
        return RowLookup(self, global_ids)

    def edge_pairs(self, split: str) -> EdgePairs:
        """This rank's pairs of "train", "valid" or "test" of the split of edges. Raises: InputError without one."""
        return edge_pairs(self.local, split, self.weight_dtype)

    def num_labelled(self, split: str) -> int:
        """Labelled rows of "train", "valid" or "test" over all ranks."""
        self.transport.has_global_loss = True  # a sum of losses divided by it is a share of a global one
        return self.info[split]
