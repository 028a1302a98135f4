"""The rows that a task is on: all rows of a graph of one type, the rows of one type of a typed graph.

    rows = rows_of_task(graph, "paper")     what losses, metrics, tasks and predictions are given in place of a graph

Legend: O owned rows of the type.
"""

from collections.abc import Mapping
from functools import cached_property
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

from distgnn.comm import sum_over_ranks
from distgnn.config.task import of_target, target_type
from distgnn.errors import InputError, on_all_ranks
from distgnn.graph.global_values import gather_rows
from distgnn.partition.folder.manifest import name_rows
from distgnn.rows import RowTensor, rows_of

MASKS = {"train": "train_mask", "valid": "val_mask", "test": "test_mask"}  # split -> column of a type


class TaskRows:
    """The owned vertices of one type, as a task asks a graph for them. All else is the graph's of all types.

    Collective: the constructor.

    Args: face: the `TypedGraph`; kind: the type.

    Attributes: labels [O] or [O, C], node_values [O] or [O, T], train_mask, valid_mask, test_mask [O], owned_ids [O]:
        ids within the type.
    """

    def __init__(self, face: Any, kind: str):
        plain, store = face.plain, face[kind]
        self.face, self.kind, self.plain, self.vertex_space = face, kind, plain, store.vertex_space
        column = store.frame.get
        self.labels, self.node_values = column("label"), column("value")
        self.num_owned, self.num_global_nodes = self.vertex_space.num_local, int(store.num_nodes)
        self.owned_ids: np.ndarray = self.vertex_space.places
        self.info: dict[str, Any] = of_target(plain.info, kind)
        nothing = torch.zeros(self.num_owned, dtype=torch.bool)
        self.set_splits({split: column(name, nothing).numpy() for split, name in MASKS.items()})

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or "plain" not in self.__dict__:
            raise AttributeError(name)
        return getattr(self.plain, name)

    @property
    def num_classes(self) -> int:
        return self.info["num_classes"]

    @property
    def multilabel(self) -> bool:
        return bool(self.info["multilabel"])

    @property
    def num_values(self) -> int:
        return self.info.get("num_values", 0)

    @cached_property
    def local(self) -> Any:
        """What of a part is asked for beside columns: names."""
        names = self.plain.local.typed[self.kind].get("names")
        if names is not None and names.dtype.kind == "U":
            names = name_rows(names, self.plain.info["typed"][self.kind]["names"][1])
        return SimpleNamespace(node_names=names)

    def num_labelled(self, split: str) -> int:
        """Rows of "train", "valid" or "test" over all ranks."""
        self.plain.transport.has_global_loss = True  # as of a DistGraph
        return self.info[split]

    def set_splits(self, masks: Mapping[str, np.ndarray]) -> None:
        """Train, validate and test on these rows from now on, bool [O]. Collective: yes."""
        counts = sum_over_ranks(self.plain.comm, np.array([np.count_nonzero(mask) for mask in masks.values()]))
        self.info |= dict(zip(masks, map(int, counts), strict=True))
        for split, mask in masks.items():
            setattr(self, f"{split}_mask", torch.from_numpy(mask))
            if MASKS[split] in self.face[self.kind].frame:
                self.face[self.kind].frame[MASKS[split]] = torch.from_numpy(mask)

    def rows_of(self, rows: torch.Tensor) -> RowTensor:
        """This rank's rows [O, …] as rows of all ranks."""
        return rows_of(rows, self.vertex_space)

    def gather_rows(self, rows: torch.Tensor, root: int | None = 0) -> np.ndarray | None:
        """As of a DistGraph. Collective: yes."""
        return gather_rows(self, rows, root)

    @property
    def local_feats(self) -> dict[str, Any]:
        """The same of this rank, as ordinary tensors."""
        columns = ((store.type_name, store.frame.get("feat")) for store in self.face.node_stores)
        return {name: rows for name, rows in columns if rows is not None}

    @property
    def feats(self) -> dict[str, Any]:
        """What a model is given beside the graph: features by type."""
        return self.face.x_dict

    def picked(self, made: Any) -> Any:
        """The rows of this type among what a model gave: of a dict by type, or rows of it alone."""
        if isinstance(made, dict):
            if made.get(self.kind) is None:
                raise on_all_ranks(
                    InputError(
                        f"the model gave rows of {', '.join(map(str, made))}, and the task is on {self.kind!r}: give "
                        "target= another type, or the model an output for it"
                    )
                )
            made = made[self.kind]
        if isinstance(made, RowTensor) and made.row_space.of_type not in (None, self.kind):
            raise on_all_ranks(
                InputError(f"the model gave rows of type {made.row_space.of_type!r}, and the task is on {self.kind!r}")
            )
        return made


def rows_of_task(graph: Any, target: str | None = None) -> Any:
    """The rows that a task is on: of the type `target`, or of the one type that has labels; a graph of one type
    itself (plain tensors).

    Collective: the first time for each target. Raises: InputError as `target_type`, on all ranks.
    Args: target: None: of a typed graph the type that was last asked for.
    """
    plain = graph.plain
    state = vars(plain)
    known, face = state.get("task_rows"), state.get("typed")
    if face is None or (target is None and known is not None):
        if face is None and target is not None:
            raise on_all_ranks(InputError(f"target {target!r}: this graph was loaded without types, or has one"))
        return known or plain
    kind = target_type(plain.info, target)
    if kind is None:
        raise on_all_ranks(InputError("no type has labels or values: give the type that is to be learned some"))
    if known is None or known.kind != kind:
        known = state["task_rows"] = TaskRows(face, kind)
    return known
