"""RowGraph: a DistGraph whose columns know that they are rows of all ranks. `dg.load` gives one.

A graph has two faces over the same state. `graph.plain` shows this rank's rows as ordinary tensors, for the program's
own code. This one shows them as `RowTensor`s, for scripts. Operators take either.
"""

import copy
import functools
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch import nn

from distgnn.comm import extreme_over_ranks, sum_over_ranks
from distgnn.errors import InputError
from distgnn.graph.face.data_access import DataAccess, arc_ends_of
from distgnn.graph.face.origin import trail_of
from distgnn.graph.global_values import gather_rows
from distgnn.interop.dgl import dispatch
from distgnn.interop.dgl.api import Frame
from distgnn.interop.pyg.api import arc_index, register
from distgnn.ops.sums import all_sum
from distgnn.rows import RowTensor, Space, WholeTensor, local_of, rows_of
from distgnn.rows.align import in_space, part_of
from distgnn.rows.row_tensor import keep_from_compiler, whole_of
from distgnn.system.scripts.run_script import share_random_states

GIVES = {  # what an operator gives where that is not a row of each vertex
    **dict.fromkeys(("to_arcs", "on_arcs", "gsddmm", "edge_softmax", "pair_scores", "pair_dots"), "arcs"),
    **dict.fromkeys(("all_sum", "all_max", "readout"), "whole"),
    **dict.fromkeys(("gather_rows_at", "table", "halo_broadcast", "summed_cross_entropy"), "own"),
    **dict.fromkeys(("dropout", "dropout_of"), "like"),
}
OF_OWN = ("all_sum", "all_max", "halo_reduce")  # operators of numbers that are this rank's
ANY_ROWS = ("dropout_of",)


class Count(int):
    """A number that may be called, as `dgl` has `num_nodes()` and PyG `num_nodes`; by type where there are several."""

    by_type: Callable[[Any], int] | None

    def __new__(cls, total: int, by_type: Callable[[Any], int] | None = None) -> "Count":
        made = super().__new__(cls, total)
        made.by_type = by_type
        return made

    def __call__(self, kind: Any = None, **names: Any) -> int:
        """Args: kind: the name of a type or relation, also as `ntype` or `etype`; None: all."""
        kind = next(iter(names.values()), kind)
        return int(self) if kind is None or self.by_type is None else int(self.by_type(kind))


class Arcs(Space):
    """The arcs of a graph, in the order of the source: that of their ids, or sorted by source and target."""

    def __init__(self, graph: Any):
        self._ids = np.asarray(graph.local.arc_ids)
        (total,) = sum_over_ranks(graph.comm, np.array([len(self._ids)]))
        options: dict[str, Any] = {"draw_ids": lambda: self._ids, "kind": "arcs"}
        super().__init__(graph, len(self._ids), int(total), self._places, **options)
        self.of_type = getattr(graph, "name", None)

    def _places(self) -> np.ndarray:
        """Ids count up to the number of arcs, but for loops of undirected graphs, which have one arc."""
        mine = self._ids.astype(np.int64)
        if self.graph.info.get("arc_order") == "sorted":
            sources, targets = arc_ends_of(self.graph)
            pairs = self.comm.allgather((sources, targets, mine[: self.num_counted]))
            order = np.lexsort([np.concatenate(part) for part in zip(*pairs, strict=True)][::-1])
            places = np.empty(self.num_global, np.int64)
            places[order] = np.arange(len(places))
            return places[sum(len(one) for one, _, _ in pairs[: self.comm.rank]) :][: len(mine)]
        counted = mine[: self.num_counted]
        (top,) = extreme_over_ranks(self.comm, np.array([counted.max(initial=-1)]), "max")
        (low,) = extreme_over_ranks(self.comm, np.array([counted.min(initial=np.iinfo(np.int64).max)]), "min")
        if top + 1 - low == self.num_global:  # a relation's begin behind another's
            return mine - low
        every = np.sort(np.concatenate(self.comm.allgather(counted)))
        return np.searchsorted(every, mine)

    def local_part(self, whole: torch.Tensor, dim: int) -> torch.Tensor:
        self.check_order(whole, dim)
        return super().local_part(whole, dim)

    def check_order(self, whole: torch.Tensor, dim: int) -> None:
        """Raise InputError for an ordinary tensor of numbers of arcs that differ, where arcs have another order."""
        known = self.graph.info.get("arc_order") != "other"
        if not known and len(whole) and not bool((whole == whole.narrow(dim, 0, 1)).all()):
            raise InputError(
                "an ordinary tensor of one number for each arc meets arcs whose order in the source is not known: sort "
                "them before the graph is made, GraphData.from_pyg(data.coalesce(), directed=False), or keep "
                "directed=True"
            )


class RowFrame(Frame):
    """The columns of a frame as rows of all ranks."""

    def __init__(self, frame: Frame, space: Space, kept: dict[str, RowTensor]):
        self._frame, self._space, self._kept = frame, space, kept
        self.kind: str = frame.kind
        self.num_rows: int = space.num_global

    def __getitem__(self, name: str) -> Any:
        return as_rows(self._frame[name], self._space, self._kept, name)

    def __setitem__(self, name: str, column: Any) -> None:
        self._frame[name] = local_column(column, self._space, name)
        self._kept.pop(name, None)

    def __delitem__(self, name: str) -> None:
        del self._frame[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._frame)

    def __len__(self) -> int:
        return len(self._frame)

    def copy(self) -> Frame:
        return self._frame.copy()


def as_rows(column: Any, space: Space, kept: dict[str, RowTensor], name: str) -> Any:
    """The same RowTensor for the same column, so that masks are known again."""
    if column is None:
        return None
    known = kept.get(name)
    if known is None or known.inner is not column:
        known = kept[name] = rows_of(column, space)
        if space.trail is not None:
            known.origin = space.trail.column(name, column)
    return known


def local_column(column: Any, space: Space, name: str) -> Any:
    """This rank's rows of a column that is set: of rows, or of an ordinary tensor of all of them."""
    if column is None:
        return None
    if isinstance(column, RowTensor):
        mine = in_space(column, space).inner
    else:
        whole = torch.as_tensor(column)
        count = len(whole) if whole.dim() else 0
        if count != space.num_global:
            raise InputError(
                f"{name!r} has {count} rows: the graph has {space.num_global} {space.kind}, give one for each, in the "
                "source's order"
            )
        mine = part_of(local_of(whole), space, 0, name)
    if space.trail is not None:
        space.trail.set_column(name, column, mine)
    return mine


def _column(name: str) -> Any:
    def get(self: Any) -> Any:
        others = self.__dict__.get("_other_rows", {})
        return others.get(name, as_rows(self.__dict__.get(name), self.vertex_space, self._kept_rows, name))

    def put(self: Any, column: Any) -> None:
        others = self.__dict__.setdefault("_other_rows", {})
        others.pop(name, None)
        if isinstance(column, RowTensor) and column.shape[0] != self.vertex_space.num_global:
            others[name], column = column, None  # y = y[train_mask]: what a script set comes back
        self.__dict__[name] = local_column(column, self.vertex_space, name)

    return property(get, put, doc=f"`{name}` of all vertices.")


class RowGraph:
    """What scripts see of a graph: put in front of DistGraph's classes by `with_rows`."""

    knows_rows = True
    face: Any
    feats, labels, node_values = _column("feats"), _column("labels"), _column("node_values")
    train_mask, valid_mask, test_mask = _column("train_mask"), _column("valid_mask"), _column("test_mask")
    node_types, graph_ids = _column("node_types"), _column("graph_ids")
    plain: Any
    vertex_space: Space
    arc_space: Space
    space_at: Callable[[str], Space]

    @property
    def edge_weight(self) -> Any:
        return self.edata.get("weight")

    @edge_weight.setter
    def edge_weight(self, column: Any) -> None:
        if column is None:
            self.edata.pop("weight", None)
        else:
            self.edata["weight"] = column
        self.__dict__["edge_weight"] = self.plain.edata.get("weight")

    vertex_columns: Any = property(
        lambda graph: RowFrame(graph.plain.ndata, graph.vertex_space, graph.__dict__["_kept_ndata"]),
        doc="Columns over all vertices.",
    )
    ndata = srcdata = dstdata = vertex_columns
    edata: Any = property(
        lambda graph: RowFrame(graph.plain.edata, graph.arc_space, graph.__dict__["_kept_edata"]),
        doc="Columns over all arcs.",
    )
    num_nodes: Any = property(lambda graph: Count(graph.vertex_space.num_global), doc="Vertices of the whole graph.")
    number_of_nodes = num_src_nodes = num_dst_nodes = number_of_src_nodes = number_of_dst_nodes = num_nodes
    num_edges: Any = property(lambda graph: Count(graph.arc_space.num_global), doc="Arcs of the whole graph.")
    number_of_edges = num_edges

    def batch_num_nodes(self, ntype: str | None = None) -> torch.Tensor:
        return torch.tensor([int(self.num_nodes)])

    def batch_num_edges(self, etype: Any = None) -> torch.Tensor:
        return torch.tensor([int(self.num_edges)])

    def local_var(self) -> Any:
        return copy.copy(self)

    @property
    def _graph(self) -> Any:
        """What DGL's own operators take for the graph's index."""
        known = self.__dict__.get("_index_of_rows")
        if known is None or known.graph is not self:
            known = self.__dict__["_index_of_rows"] = dispatch.index_of(self)
        return known

    def in_degrees(self, v: Any = "__ALL__", etype: Any = None) -> Any:
        """In-degrees of all vertices, int64 [N], or of those with some ids."""
        return self._of_vertices(self.plain.in_degrees(), v, "target")

    def out_degrees(self, v: Any = "__ALL__", etype: Any = None) -> Any:
        """Out-degrees of all vertices, int64 [N], or of those with some ids."""
        return self._of_vertices(self.plain.out_degrees(), v, "source")

    def _of_vertices(self, degrees: torch.Tensor, ids: Any, role: str) -> Any:
        rows = rows_of(degrees, self.space_at(role))
        return rows if isinstance(ids, str) else rows[ids]

    def global_mean(self, values: torch.Tensor) -> torch.Tensor:
        """The mean over the values of all ranks. Collective: yes, and backward.

        Args: values: rows; or an ordinary tensor of this rank's own numbers (what `dg.ops.gather_rows_at` gave).
        """
        if isinstance(values, RowTensor | WholeTensor):
            return values.mean()
        graph = self.plain
        (count,) = sum_over_ranks(graph.comm, np.array([values.numel()]))
        return whole_of(all_sum(graph, values.sum()) / max(int(count), 1))

    def gather_rows(self, rows: Any, root: int | None = 0) -> np.ndarray | None:
        """Rows of all ranks as a numpy array in the original order, on rank `root` (None: all). Collective: yes."""
        if isinstance(rows, RowTensor):
            rows = in_space(rows, self.vertex_space).inner
        return gather_rows(self.plain, rows, root)

    def with_part(self, local: Any) -> Any:
        """A graph of the same kind and settings over another part. Collective: yes."""
        return with_rows(self.plain.with_part(local))

    def rows_of(self, rows: torch.Tensor) -> RowTensor:
        """This rank's rows of vertices, an ordinary tensor [O, ...], as rows of all ranks."""
        return rows_of(rows, self.vertex_space)

    @property
    def edge_index(self) -> Any:
        """What PyG's layers and models take for `edge_index`; its rows are of all ranks."""
        return arc_index(self.plain)

    def in_rows(self, run: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """An operator or a layer on this rank's rows; what it gives, as rows again."""
        trail, own = self.vertex_space.trail, GIVES.get(run.__name__) == "own" or run.__name__ in OF_OWN
        if trail is None or own:  # ids and numbers of one rank are its own
            return self._in_rows(run, args, kwargs)
        given = (*args, *kwargs.values())  # arrays and ordinary tensors may be this rank's own
        operands = [
            one for one in given if isinstance(one, RowTensor) or not isinstance(one, torch.Tensor | np.ndarray)
        ]
        return trail.run(run.__name__, lambda *_: self._in_rows(run, args, kwargs), tuple(operands), {})

    def _in_rows(self, run: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        plain, gives = self.plain, GIVES.get(run.__name__, "vertices")
        if run.__name__ in ("all_sum", "all_max") and any(isinstance(one, RowTensor | WholeTensor) for one in args[1:]):
            raise InputError(f"{run.__name__} takes this rank's numbers, these are of all ranks already: leave it out")
        rows = next((one for one in (*args, *kwargs.values()) if isinstance(one, RowTensor)), None)
        local = [plain if one is self else self._local(one, run.__name__) for one in args]
        first = 1 if len(local) > 1 and args[0] is self else 0
        if first and gives != "whole" and run.__name__ not in OF_OWN:
            given, space = args[first], self.vertex_space
            ordinary = isinstance(given, torch.Tensor) and not isinstance(given, RowTensor) and given.dim()
            if ordinary and len(given) == space.num_global:  # of all vertices: this rank's
                local[first] = part_of(local[first], space, 0, run.__name__)
        named = {name: plain if one is self else self._local(one, run.__name__) for name, one in kwargs.items()}
        if first and gives in ("vertices", "arcs") and run.__name__ not in OF_OWN:
            local = [self._of_arcs(given, mine, run.__name__) for given, mine in zip(args, local, strict=True)]
            named = {name: self._of_arcs(kwargs[name], mine, run.__name__) for name, mine in named.items()}
        found = run(*local, **named)
        if gives == "like":
            return found if rows is None else rows_of(found, rows.row_space, rows.row_dim)
        return self._wrapped(found, gives)

    def _of_arcs(self, given: Any, mine: Any, name: str) -> Any:
        """This rank's part of an ordinary tensor with a row for each arc, in the source's order; else `mine`."""
        count = self.arc_space.num_global
        if type(given) is not torch.Tensor or not given.dim() or len(given) != count:
            return mine
        return mine if count == self.vertex_space.num_global else part_of(given, self.arc_space, 0, name)

    def _local(self, value: Any, name: str) -> Any:
        if not isinstance(value, RowTensor):
            return local_of(value)
        if value.row_dim != 0:
            raise InputError(
                f"{name} takes rows [N, ...]: dimension {value.row_dim} of {list(value.shape)} counts them"
            )
        if value.row_space in (self.vertex_space, self.arc_space) or name in (*OF_OWN, *ANY_ROWS):
            return value.inner
        space = self.arc_space if value.row_space.same(self.arc_space) else self.vertex_space
        return in_space(value, space).inner

    def _wrapped(self, result: Any, gives: str) -> Any:
        if isinstance(result, tuple):
            return tuple(self._wrapped(one, "arcs" if number else gives) for number, one in enumerate(result))
        if not isinstance(result, torch.Tensor) or gives == "own":
            return result
        if gives == "whole":
            return whole_of(result)
        return rows_of(result, self.arc_space if gives == "arcs" else self.vertex_space)


@functools.cache
def watch_compiler() -> None:
    """Keep `torch.compile`, also as `module.compile()`, from looking into functions on rows."""
    if "torch._dynamo" in sys.modules:  # something may be compiled already
        keep_from_compiler()
        return

    def see(module: nn.Module, inputs: Any) -> None:  # a script may have taken torch.compile before
        if type(module).__name__ == "OptimizedModule":
            keep_from_compiler()

    nn.modules.module.register_module_forward_pre_hook(see)
    theirs = torch.compile

    @functools.wraps(theirs)
    def compiled(*args: Any, **kwargs: Any) -> Any:
        keep_from_compiler()
        return theirs(*args, **kwargs)

    setattr(torch, "compile", compiled)  # noqa: B010 - mypy refuses to assign a function


@functools.cache
def _class_of(kind: type[Any], manners: Any) -> type[Any]:
    return type(kind.__name__, (DataAccess, manners, kind), {"__doc__": kind.__doc__, "__module__": kind.__module__})


def face_of(graph: Any, vertices: Space, manners: Any = RowGraph) -> Any:
    """What scripts see of a graph whose vertices have a space. Collective: yes."""
    kind: Any = type(graph)
    face: Any = object.__new__(_class_of(kind, manners))
    state = face.__dict__ = graph.__dict__
    state["face"], state["vertex_space"], state["arc_space"] = face, vertices, Arcs(graph)
    state["_kept_rows"], state["_kept_ndata"], state["_kept_edata"] = {}, {}, {}
    return face


def with_rows(graph: Any) -> Any:
    """The face of a graph that scripts see. Collective: yes.

    Ranks take the states of rank 0's generators: what a script draws with torch, `numpy.random` or `random` is then
    the same on all.
    """
    sizes, owned = (graph.num_rows, graph.num_global_nodes), graph.num_owned
    graph.__dict__["trail"] = trail_of(graph)
    vertices = Space(graph, *sizes, lambda: graph.row_ids, num_counted=owned, kind="vertices")
    watch_compiler()
    share_random_states(graph.comm)
    face = face_of(graph, vertices)
    register(graph)  # its rows are of all ranks now
    return face
