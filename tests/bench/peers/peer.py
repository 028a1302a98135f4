"""Peer: what a case is given, the same on the plain library and on ranks; and how its results are made comparable.

A case reads the graph from `peer.g` (a PyG `Data`, a `DGLGraph`, or a DistGraph) and uses the three calls that a script
changes: `peer.distribute`, `peer.optimizer`, and the graph itself. What it returns is flattened to arrays by name.
"""

import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import nn

import distgnn as dg

STEPS, RATE = 3, 0.05
RTOL, ATOL = 1e-7, 1e-9  # float64 sums in another order, through three steps
NARROW = 1e3  # times as much where the plain library itself gives float32


class Peer:
    """One process with the plain library, or one rank with a DistGraph.

    Args: library: "pyg" or "dgl"; graph: what that library calls a graph, or a DistGraph; ids: plain tensors of global
        ids and of pairs of them, the same on every rank; dg: the package `distgnn`, or None in the plain
        library; folder: the graph's parts.
    """

    def __init__(self, library: str, graph: Any, ids: SimpleNamespace, dg: Any = None, folder: str = ""):
        self.library, self.g, self.ids, self.dg, self.folder = library, graph, ids, dg, folder

    @property
    def x(self) -> torch.Tensor:
        """Features, as a leaf with a gradient."""
        feats = self.g.x if self.library == "pyg" else self.g.ndata["feat"]
        return feats.detach().clone().requires_grad_()

    @property
    def num_nodes(self) -> int:
        """As a script asks for it."""
        return self.g.num_nodes if self.library == "pyg" else self.g.num_nodes()

    @property
    def y(self) -> torch.Tensor:
        """Classes."""
        return self.g.y if self.library == "pyg" else self.g.ndata["label"]

    @property
    def train_mask(self) -> torch.Tensor:
        """Which vertices are trained on."""
        return self.g.train_mask if self.library == "pyg" else self.g.ndata["train_mask"]

    def distribute(self, model: nn.Module) -> nn.Module:
        """The line that a script has for its model."""
        return self.dg.nn.distribute(model, self.g) if self.dg else model

    def optimizer(self, optimizer: torch.optim.Optimizer) -> torch.optim.Optimizer:
        """The line that a script has for its optimiser."""
        return self.dg.DistributedOptimizer(optimizer, self.g) if self.dg else optimizer

    def weights(self, model: nn.Module) -> dict[str, Any]:
        """Parameters and buffers without a row per vertex."""
        return {name: one for name, one in model.state_dict().items() if self._small(one)}

    def train(self, model: nn.Module, loss: Callable[[nn.Module], torch.Tensor], make: Any = None) -> dict[str, Any]:
        """Three steps: losses, and the weights after the first step and the last."""
        model = self.distribute(model)
        make = make or (lambda parameters: torch.optim.SGD(parameters, RATE))
        optimizer = self.optimizer(make(list(model.parameters()))) if list(model.parameters()) else None
        found: dict[str, Any] = {"losses": []}
        for step in range(STEPS):
            if optimizer:
                optimizer.zero_grad()
            value = loss(model)
            if value.requires_grad:
                value.backward()
            found["losses"].append(float(value.detach()))
            if optimizer:
                optimizer.step()
                if step == 0:
                    found["first weights"] = {name: one.detach().clone() for name, one in self.weights(model).items()}
        return found | {"weights": self.weights(model)}

    def train_rows(self, model: nn.Module, rows: Callable[[nn.Module], torch.Tensor], make: Any = None) -> dict:
        """Three steps of a loss of rows that the model gives, and these rows at the end."""
        outs = []

        def loss(model: nn.Module) -> torch.Tensor:
            outs[:] = [rows(model)]
            return outs[0].sin().mean()

        return self.train(model, loss, make) | {"out": outs[0]}

    def _small(self, tensor: torch.Tensor) -> bool:
        return self.ids.num_nodes not in tensor.shape and (not self.dg or self.g.num_owned not in tensor.shape[:1])

    def arrays(self, found: Any) -> dict[str, np.ndarray]:
        """Results by name, as arrays of the whole graph in the source's order. Collective on ranks."""
        return dict(self._flat("", found))

    def _flat(self, name: str, value: Any) -> Iterator[tuple[str, np.ndarray]]:
        if isinstance(value, dict):
            pairs = list(value.items())
        elif isinstance(value, (list, tuple)) and not hasattr(value, "shape"):
            pairs = list(enumerate(value))
        elif isinstance(value, nn.Module):
            pairs = list(self.weights(value).items())
        else:
            yield name, self._array(value)
            return
        for key, one in pairs:
            yield from self._flat(f"{name}.{key}".strip("."), one)

    def _array(self, value: Any) -> np.ndarray:
        if not isinstance(value, torch.Tensor):
            return np.asarray(value if isinstance(value, (bool, int, float, np.ndarray)) else str(value))
        value = value.detach()
        if self.dg and type(value) is torch.Tensor and not self._rows_know() and value.dim():
            if value.shape[0] == self.g.num_owned:  # of a tree without row tensors: the rank's rows, in its order
                return self.g.gather_rows(value, None)
        return np.array(value.resolve_neg().numpy() if type(value) is torch.Tensor else value.numpy())

    def _rows_know(self) -> bool:
        return type(self.g.train_mask) is not torch.Tensor


def difference(found: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> str:
    """Where results differ, in one line; empty where they are equal up to rounding."""
    if found.keys() != expected.keys():
        return f"results {sorted(found)} in place of {sorted(expected)}"
    for name, right in expected.items():
        left = found[name]
        if left.shape != right.shape:
            return f"{name}: shape {left.shape} in place of {right.shape}"
        if left.dtype.kind in "fc" or right.dtype.kind in "fc":
            scale = max(1.0, float(np.nanmax(np.abs(right), initial=0.0, where=np.isfinite(right))))
            wide = NARROW if right.dtype == np.float32 else 1.0
            if not np.allclose(left, right, rtol=RTOL * wide, atol=ATOL * wide * scale, equal_nan=True):
                with np.errstate(all="ignore"):
                    return f"{name}: {_most(left, right):.2g} apart"
        elif not np.array_equal(left, right):
            shown = (
                f"{left} in place of {right}" if right.ndim == 0 else f"{(left != right).sum()} of {right.size} apart"
            )
            return f"{name}: {shown}"
    return ""


def _most(left: np.ndarray, right: np.ndarray) -> float:
    apart = np.abs(left.astype(float) - right.astype(float))
    return float("nan") if np.isnan(apart).all() else float(np.nanmax(apart))


def looks_alike(found: dict[str, np.ndarray], plain: dict[str, np.ndarray]) -> str:
    """Random results on one rank beside the plain library's, whose numbers are others: shapes and zeros."""
    for name, right in plain.items():
        if name not in found or found[name].shape != right.shape:
            return f"{name}: shape {found.get(name, np.empty(0)).shape} in place of {right.shape}"
        if right.size > 200 and right.dtype.kind in "fb":
            shares = [float((one == 0).mean()) for one in (found[name], right)]
            if abs(shares[0] - shares[1]) > 0.15:
                return f"{name}: {shares[0]:.2f} of zeros in place of {shares[1]:.2f}"
    return ""


def failure(error: BaseException) -> tuple[str, str]:
    """ "refused" for an error that this program raised in one line, else "crashed"."""
    text = str(error)
    frames = traceback.extract_tb(error.__traceback__)
    last = frames[-1]
    deliberate = isinstance(error, dg.DistGNNError) or (
        isinstance(error, (ValueError, IndexError, NotImplementedError))
        and Path(last.filename).is_relative_to(Path(dg.__file__).parent)
        and (last.line or "").startswith("raise")
    )
    if deliberate and "\n" not in text.strip():
        return "refused", text.strip()
    where = f"{Path(last.filename).name}:{last.lineno}"
    return "crashed", f"{type(error).__name__}: {' '.join(text.split())[:300]} ({where})"
