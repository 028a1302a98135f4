"""NodeStore: the columns of one type of vertices, in the manners of PyG's node store and of DGL's `nodes[type]`."""

from typing import Any

import torch

from distgnn.errors import InputError
from distgnn.graph.face.data_access import Columns, width_of
from distgnn.graph.face.row_graph import Count, RowFrame
from distgnn.interop.dgl.api import Frame
from distgnn.rows import RowTensor, Space

NAMES = {"feats": "feat", "labels": "label", "valid_mask": "val_mask", "values": "value"}  # of a part -> of a frame
MADE_BEFORE = "give the graph its types and relations before it is cut"


class NodeStore(Columns):
    """The columns of one type, by the names of PyG (`x`, `y`) and of DGL (`data["feat"]`)."""

    knows_rows = True  # for dg.nn.NodeEmbedding(data["author"], 64)

    def __init__(self, name: str, space: Space, frame: Frame):
        self.__dict__.update(type_name=name, vertex_space=space, frame=frame, kept={}, given={})

    @property
    def data(self) -> RowFrame:
        """The columns by the names of DGL."""
        return RowFrame(self.frame, self.vertex_space, self.kept)

    num_nodes: Any = property(lambda store: Count(store.vertex_space.num_global))
    num_features: Any = property(lambda store: width_of(store.get("x")))
    num_node_features = num_features

    def _place(self, name: str) -> str:
        if name == "y":
            return "label" if "label" in self.frame or "value" not in self.frame else "value"
        return "feat" if name == "x" else name

    def keys(self) -> list[str]:
        shown = {"feat": "x", "label": "y", "value": "y"}
        return [*dict.fromkeys(shown.get(name, name) for name in self.frame), *self.given]

    def __contains__(self, name: str) -> bool:
        return self._place(name) in self.frame or name in self.given

    def __getitem__(self, name: str) -> Any:
        if name not in self:
            raise KeyError(f"type {self.type_name!r} has no column {name!r}; there are {self.keys()}")
        return self.given[name] if name in self.given else self.data[self._place(name)]

    def __getattr__(self, name: str) -> Any:
        if "frame" in self.__dict__ and not name.startswith("__") and name in self:
            return self[name]
        raise AttributeError(f"type {self.__dict__.get('type_name')!r} has no column {name!r}")

    def __setattr__(self, name: str, value: Any) -> None:
        """A tensor with a row for each vertex of the type is a column; anything else is kept as it is."""
        if name == "num_nodes":
            if int(value) != self.num_nodes:
                raise InputError(f"type {self.type_name!r} has {self.num_nodes} vertices, not {value}: {MADE_BEFORE}")
            return
        is_rows = isinstance(value, torch.Tensor) and value.dim() > 0
        known = isinstance(value, RowTensor) or self._place(name) in NAMES.values()
        if is_rows and (known or len(value) == self.num_nodes):
            self.given.pop(name, None)
            self.data[self._place(name)] = value
        else:
            self.frame.pop(self._place(name), None)
            self.given[name] = value

    __setitem__ = __setattr__

    def __delattr__(self, name: str) -> None:
        if name not in self:
            raise AttributeError(f"type {self.type_name!r} has no column {name!r}; there are {self.keys()}")
        self.given.pop(name, None)
        self.frame.pop(self._place(name), None)

    __delitem__ = __delattr__

    def scoped(self) -> "NodeStore":
        """The same columns in a frame of their own: what is set there is not seen here."""
        made = NodeStore(self.type_name, self.vertex_space, self.frame.copy())
        made.given.update(self.given)
        return made

    def __repr__(self) -> str:
        shapes = ", ".join(f"{name}={list(getattr(one, 'shape', []))}" for name, one in self.items())
        return f"{self.type_name}: {self.num_nodes} vertices, {shapes}"
