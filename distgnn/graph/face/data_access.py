"""DataAccess: what scripts do with a `torch_geometric.data.Data`, on the face of a graph.

    data["x"], "x" in data, data.keys(), data("train_mask", "val_mask")     columns by name
    data.x = column, data.score = column                                     one row for each vertex, or for each arc
    copy.copy(data), data.clone()                                            the same graph with columns of its own
    data.is_undirected(), data.has_isolated_nodes(), …                       questions about the arcs of all ranks

A tensor with a row for each vertex becomes a column of vertices, one with a row for each arc a column of arcs; anything
else is kept as it is. So transforms of columns (`T.NormalizeFeatures`) run; transforms of arcs are refused.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from distgnn.comm import sum_over_ranks
from distgnn.errors import InputError
from distgnn.ops.edges.on_arcs import arc_ends
from distgnn.rows import RowTensor
from distgnn.rows.draws import mixed

BEFORE_THE_CUT = "transform the graph before it is cut: dg.GraphData.from_pyg(transform(data)), then partition it"
PLACES: dict[str, tuple[str | None, str]] = {  # names of PyG -> (frame or None for an attribute, name there)
    "x": (None, "feats"),
    "val_mask": (None, "valid_mask"),
    "edge_attr": ("edata", "feat"),
    "edge_type": ("edata", "etype"),
    "node_type": (None, "node_types"),
    "batch": (None, "graph_ids"),
}
IN_FRAME = {  # attribute -> its column of `ndata`
    **{"feats": "feat", "labels": "label", "valid_mask": "val_mask"},
    **{name: name for name in ("train_mask", "test_mask")},
}
OF_VERTICES = ("x", "y", "node_type", "batch", "train_mask", "val_mask", "test_mask")
OF_ARCS = ("edge_attr", "edge_weight", "edge_type")
ALIASES = {"feat", "label", "weight", "etype", "ntype", *OF_VERTICES, *OF_ARCS}  # columns that have a name above


class OnCPU:
    """What scripts ask of devices and checks."""

    def to(self, device: Any = "cpu", *_: Any, **__: Any) -> Any:
        """This graph. Raises: InputError for another device than the CPU."""
        if torch.device(device).type != "cpu":
            raise InputError(f"a graph that is cut lives on the CPU: it cannot go to {device}")
        return self

    def cpu(self, *names: str) -> Any:
        return self

    contiguous = cpu

    def cuda(self, *_: Any, **__: Any) -> Any:
        """Raises: InputError."""
        return self.to("cuda")

    def validate(self, raise_on_error: bool = True) -> bool:
        """True: the parts were checked when they were loaded."""
        return True


class Columns(OnCPU):
    """Columns by name, whose names are `keys()`."""

    keys: Any
    __getitem__: Any
    __contains__: Any

    def get(self, name: str, default: Any = None) -> Any:
        return self[name] if name in self else default

    def __len__(self) -> int:
        return len(self.keys())

    def items(self, *names: str) -> list[tuple[str, Any]]:
        """(name, value) of the columns named, or of all."""
        return [(name, self[name]) for name in self.keys() if not names or name in names]

    def values(self, *names: str) -> list[Any]:
        return [value for _, value in self.items(*names)]

    def to_dict(self) -> dict[str, Any]:
        return dict(self.items())


class DataAccess(Columns):
    """In front of `RowGraph`, whose columns are rows of all ranks."""

    plain: Any
    face: Any
    vertex_space: Any
    arc_space: Any
    vertex_columns: Any
    edata: Any
    labels: Any
    node_values: Any

    # --- sizes -----------------------------------------------------------------------------------------------------

    num_node_features: Any = property(lambda graph: width_of(graph.feats))
    num_edge_features: Any = property(lambda graph: width_of(graph.edata.get("feat")))
    num_features = num_node_features

    def size(self, dim: int | None = None) -> Any:
        """(vertices, vertices), as of an adjacency matrix."""
        size = (self.vertex_space.num_global, self.vertex_space.num_global)
        return size if dim is None else size[dim]

    # --- by name ---------------------------------------------------------------------------------------------------

    def keys(self) -> list[str]:
        """Names of what there is, but None."""
        known = (*OF_VERTICES[:1], "edge_index", *OF_ARCS, *OF_VERTICES[1:])
        named = [name for name in known if getattr(self, name, None) is not None]
        columns = [name for name in (*self.vertex_columns, *self.edata) if name not in ALIASES]
        return [*named, *dict.fromkeys([*columns, *self.__dict__.get("_given", ())])]

    def __contains__(self, name: str) -> bool:
        return name in self.keys()

    def __bool__(self) -> bool:
        return True

    def __getitem__(self, name: str) -> Any:
        if not isinstance(name, str) or not hasattr(self, name):
            raise KeyError(f"the graph has no column {name!r}; there are {self.keys()}")
        return getattr(self, name)

    def __setitem__(self, name: str, value: Any) -> None:
        setattr(self, name, value)

    def __delitem__(self, name: str) -> None:
        delattr(self, name)

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        return self()

    def __call__(self, *names: str) -> Iterator[tuple[str, Any]]:
        return iter(self.items(*names))

    def node_attrs(self) -> list[str]:
        return [name for name in self.keys() if self.is_node_attr(name)]

    def edge_attrs(self) -> list[str]:
        """Names of columns of arcs, `edge_index` among them."""
        return [name for name in self.keys() if self.is_edge_attr(name)]

    def is_node_attr(self, name: str) -> bool:
        return name in OF_VERTICES or (name in self.vertex_columns and name not in ALIASES)

    def is_edge_attr(self, name: str) -> bool:
        return name == "edge_index" or name in OF_ARCS or (name in self.edata and name not in ALIASES)

    @property
    def stores(self) -> list[Any]:
        """This graph, for transforms of columns."""
        return [self]

    node_stores = stores

    @property
    def edge_stores(self) -> list[Any]:
        """Raises: InputError: transforms that ask for it change arcs."""
        raise InputError(
            f"a transform of arcs cannot run on a graph that is cut: {BEFORE_THE_CUT} (ToUndirected: direction='both' "
            "of `distgnn partition`; ToSparseTensor: give layers data.edge_index)"
        )

    # --- columns that are set ----------------------------------------------------------------------------------------

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "edge_index":
            raise InputError(
                "the arcs of a graph that is cut cannot be set: keep another edge_index in a variable and give it to "
                f"layers, or {BEFORE_THE_CUT}"
            )
        if name == "y":
            is_value = self.labels is None and isinstance(value, torch.Tensor) and value.is_floating_point()
            name = "node_values" if is_value else "labels"
            if isinstance(value, torch.Tensor) and value.dtype == torch.int64 and value.dim() == 1 and len(value):
                self.__dict__["info"] = self.__dict__["info"] | {"num_classes": int(value.max()) + 1}
        frame, place = PLACES.get(name, (None, name))
        if frame is not None:
            self._put(getattr(self, frame), place, value)
        elif hasattr(type(self), place) or (place in self.__dict__ and place not in self.__dict__.get("_given", ())):
            self._set_own(place, value)
        else:
            is_column = isinstance(value, torch.Tensor) and not name.startswith("_")
            columns = self._frame_of(name, value) if is_column else None
            self._forget(name)
            if columns is not None:
                self._put(columns, name, value)
            else:
                self.__dict__[name] = value
                self.__dict__.setdefault("_given", {})[name] = None

    def __delattr__(self, name: str) -> None:
        if name in OF_VERTICES or name in OF_ARCS:
            setattr(self, name, None)
        elif not self._forget(name):
            raise AttributeError(f"{name!r} is no column of the graph: there are {self.keys()}")

    def __getattr__(self, name: str) -> Any:
        frames = self.__dict__.get("_frames")
        if frames is not None and name not in ALIASES:
            for columns, shown in ((frames.vertices, "vertex_columns"), (frames.arcs, "edata")):
                if name in columns:
                    return getattr(self, shown)[name]
        return super().__getattr__(name)  # type: ignore[misc]  # of DGLInterface, which refuses by name

    def _set_own(self, name: str, value: Any) -> None:
        found = getattr(type(self), name, None)
        if isinstance(value, torch.Tensor) and not isinstance(found, property):
            raise InputError(f"graph.{name} is the graph's own: give the column another name")
        if not isinstance(found, property) or found.fset is not None:
            object.__setattr__(self, name, value)
        elif getattr(self, name) != value:
            raise InputError(f"graph.{name} is {getattr(self, name)}, from the partition folder: it cannot be {value}")
        if name in IN_FRAME:  # the frame shows what the attribute has
            column = self.__dict__[name]
            self._put(self.plain.ndata, IN_FRAME[name], column)
            if name == "feats" and isinstance(column, torch.Tensor):
                self.plain.constants.expect(column)

    def _frame_of(self, name: str, value: torch.Tensor) -> Any:
        """The frame that a tensor is a column of; None: of neither."""
        if value.dim() == 0 or (isinstance(value, RowTensor) and value.row_dim != 0):
            return None
        columns = [(self.vertex_columns, self.vertex_space), (self.edata, self.arc_space)]
        if "edge" in name or "adj" in name:
            columns.reverse()
        return next((frame for frame, space in columns if len(value) == space.num_global), None)

    def _put(self, columns: Any, name: str, value: Any) -> None:
        if value is None:
            columns.pop(name, None)
        else:
            columns[name] = value

    def _forget(self, name: str) -> bool:
        """Remove a column of a script; was there one?"""
        known = False
        for columns in (self.vertex_columns, self.edata):
            if name in columns and name not in ALIASES:
                del columns[name]
                known = True
        if name in self.__dict__.get("_given", ()):
            del self.__dict__["_given"][name], self.__dict__[name]
            known = True
        return known

    # --- copies ------------------------------------------------------------------------------------------------------

    def __copy__(self) -> Any:
        """The same graph with columns of its own: what is set on one is not seen on the other."""
        plain: Any = object.__new__(type(self.plain))
        face: Any = object.__new__(type(self))
        state = dict(self.__dict__)
        state |= {"plain": plain, "face": face, "_frames": state["_frames"].copy()}
        state |= {name: {} for name in ("_kept_rows", "_kept_ndata", "_kept_edata")}
        state |= {name: dict(state.get(name, {})) for name in ("_given", "_other_rows")}
        object.__setattr__(plain, "__dict__", state)
        object.__setattr__(face, "__dict__", state)
        return face

    def clone(self) -> Any:
        """A copy whose columns are copies too; the arcs are shared."""
        made = self.__copy__()
        for frame in (made.plain.ndata, made.plain.edata):
            for name in frame:
                frame[name] = frame[name].clone()
        state = made.__dict__
        of_vertices = ("feats", "labels", "node_values", "node_types", "graph_ids")
        for name in (*of_vertices, "train_mask", "valid_mask", "test_mask", *state["_given"]):
            if isinstance(state.get(name), torch.Tensor):
                state[name] = state[name].clone()
        state["edge_weight"] = made.plain.edata.get("weight")
        return made

    def __deepcopy__(self, memo: dict[str, Any]) -> Any:
        return self.clone()

    # --- questions about arcs ----------------------------------------------------------------------------------------

    def is_directed(self) -> bool:
        """Is there an arc without one back? Collective: yes."""
        return not self.is_undirected()

    def is_undirected(self) -> bool:
        """Has each arc one back, with the same edge_attr? Collective: yes.

        Notes: sums of 64-bit hashes of arcs and of arcs turned around are compared.
        """
        sources, targets = arc_ends_of(self.plain)
        there, back = _hash(sources, targets), _hash(targets, sources)
        rows = self.plain.edata.get("feat")
        if rows is not None:
            counted = rows.detach()[: len(sources)].double()
            counted = counted.flatten(1) if counted.dim() > 1 else counted[:, None]
            bits = np.ascontiguousarray(counted.numpy()).view(np.uint64)
            factors = mixed(np.arange(bits.shape[1], dtype=np.uint64))
            of_rows = mixed((bits * factors).sum(axis=1, dtype=np.uint64))
            there, back = mixed(there ^ of_rows), mixed(back ^ of_rows)
        mine = np.array([(there - back).sum(dtype=np.uint64)])
        return int(sum_over_ranks(self.plain.comm, mine)[0]) == 0

    def has_self_loops(self) -> bool:
        """Does an arc end where it begins? Collective: yes."""
        sources, targets = arc_ends_of(self.plain)
        return self._any((sources == targets).any())

    contains_self_loops = has_self_loops

    def has_isolated_nodes(self) -> bool:
        """Is there a vertex without an arc from or to another one? Collective: yes."""
        graph = self.plain
        sources, targets = arc_ends_of(graph)
        met = np.zeros(graph.num_global_nodes, np.int64)
        apart = sources != targets
        met[sources[apart]] = 1
        met[targets[apart]] = 1
        return bool((sum_over_ranks(graph.comm, met) == 0).any())

    contains_isolated_nodes = has_isolated_nodes

    def is_coalesced(self) -> bool:
        """Is no arc there twice, and are they sorted by source and target? Collective: yes."""
        return self.is_sorted() and not self.has_doubles()

    def is_sorted(self) -> bool:
        """Are the arcs, in the order of the source, sorted by source and target? Collective: yes."""
        graph = self.plain
        if graph.info.get("arc_order") in ("sorted", "other"):
            return bool(graph.info["arc_order"] == "sorted")
        sources, targets = arc_ends_of(graph)
        places = graph.arc_space.places[: len(sources)]
        blocks = np.arange(1, graph.comm.size) * graph.arc_space.num_global // graph.comm.size
        to = np.searchsorted(blocks, places, side="right")
        rows = np.stack([places, sources * graph.num_global_nodes + targets])
        mine = np.concatenate(graph.comm.alltoall([rows[:, to == rank] for rank in range(graph.comm.size)]), axis=1)
        keys = mine[1][np.argsort(mine[0])]
        ends = np.concatenate(graph.comm.allgather(keys[[0, -1]] if len(keys) else keys))
        return not self._any((np.diff(keys) < 0).any()) and bool((np.diff(ends) >= 0).all())

    def has_doubles(self) -> bool:
        """Is an arc there twice? Collective: yes."""
        graph = self.plain
        sources, targets = arc_ends_of(graph)
        keys = sources * graph.num_global_nodes + targets
        to = mixed(keys.astype(np.uint64)) % np.uint64(graph.comm.size)
        keys = np.concatenate(graph.comm.alltoall([keys[to == rank] for rank in range(graph.comm.size)]))
        return self._any(len(np.unique(keys)) < len(keys))

    def coalesce(self) -> Any:
        """`sort()`, if no arc is there twice. Raises: InputError."""
        if self.has_doubles():
            raise InputError(f"arcs that are there twice cannot be merged in a graph that is cut: {BEFORE_THE_CUT}")
        return self.sort()

    def sort(self) -> Any:
        """This graph with its arcs sorted by source and target. Collective: yes."""
        made = self.__copy__()
        if not self.is_sorted():
            made.__dict__ |= {"info": self.plain.info | {"arc_order": "sorted"}, "kept_arcs": {}}
            made.__dict__["arc_space"] = type(self.arc_space)(made.plain)
        return made

    def _any(self, here: Any) -> bool:
        return int(sum_over_ranks(self.plain.comm, np.array([int(here)]))[0]) > 0


def width_of(rows: Any) -> int:
    if rows is None:
        return 0
    return int(rows.shape[1]) if len(rows.shape) > 1 else 1


def arc_ends_of(graph: Any) -> tuple[np.ndarray, np.ndarray]:
    """Global ids of the sources and targets of the arcs that this rank counts, int64 each."""
    return arc_ends(graph.local, np.asarray(graph.local.global_ids).astype(np.int64))


def _hash(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    return mixed(mixed(first.astype(np.uint64)) + second.view(np.uint64))
