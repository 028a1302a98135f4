"""A layer as several cases: as it is, in place, on a mask, by ids, from a table of vertices, and without gradients."""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from cases import Case, add
from peer import Peer
from torch import nn
from worlds import WIDTH

Make = Callable[[], nn.Module]
Call = Callable[[nn.Module, Peer, torch.Tensor], Any]


class Function(nn.Module):
    """A function of modules and of what a call is given, as a layer."""

    def __init__(self, function: Callable, *modules: nn.Module):
        super().__init__()
        self.function, self.modules_given = function, nn.ModuleList(modules)

    def forward(self, *arguments: Any) -> Any:
        return self.function(*self.modules_given, *arguments)


def add_layer(library: str, name: str, make: Make, call: Call, modes: str = "", **options: Any) -> None:
    """The cases of one layer.

    Args: make: makes it; call: runs it on (layer, peer, rows); modes: a text with names of `MODES`, all if empty.
    """
    for mode in [one for one in MODES if not modes or one in modes]:

        def run(peer: Peer, mode: str = mode) -> Any:
            return MODES[mode](peer, make().double(), call)  # DGL makes some weights float32 whatever is set

        add(Case(f"{library}: {name}, {mode}", f"layers of {library}, {mode}", run, library=library, **options))


def rows_of(out: Any) -> torch.Tensor:
    """The rows among what a layer gives."""
    while not isinstance(out, torch.Tensor):
        out = next(iter(out.values())) if isinstance(out, dict) else out[0]
    return out


def _whole(peer: Peer, layer: nn.Module, call: Call) -> Any:
    rows = peer.x
    return peer.train_rows(layer, lambda model: rows_of(call(model, peer, rows))) | {"gradient": rows.grad}


def _in_place(peer: Peer, layer: nn.Module, call: Call) -> Any:
    rows = peer.x

    def changed(model: nn.Module) -> torch.Tensor:
        out = rows_of(call(model, peer, rows * 1.5))
        out.add_(0.1)
        out *= 1.5
        out[:, 0] = 0.5
        return F.relu(out, inplace=True)

    return peer.train_rows(layer, changed) | {"gradient": rows.grad}


def _mask(peer: Peer, layer: nn.Module, call: Call) -> Any:
    rows = peer.x

    def loss(model: nn.Module) -> torch.Tensor:
        out = rows_of(call(model, peer, rows)).flatten(1)
        return F.cross_entropy(out[peer.train_mask], peer.y[peer.train_mask] % out.shape[1])

    found = peer.train(layer, loss)
    with torch.no_grad():
        out = rows_of(call(layer.eval(), peer, rows)).flatten(1)
    right = out.argmax(1) == peer.y % out.shape[1]
    return found | {"right": int(right[peer.train_mask].sum()), "out": out[peer.train_mask]}


def _ids(peer: Peer, layer: nn.Module, call: Call) -> Any:
    rows = peer.x

    def loss(model: nn.Module) -> torch.Tensor:
        out = rows_of(call(model, peer, rows)).flatten(1)
        ids, (left, right) = peer.ids.train, peer.ids.pos
        return F.cross_entropy(out[ids], peer.y[ids] % out.shape[1]) + (out[left] * out[right]).sum(-1).sigmoid().mean()

    found = peer.train(layer, loss)
    return found | {"gradient": rows.grad}


def _table(peer: Peer, layer: nn.Module, call: Call) -> Any:
    model = nn.ModuleDict({"table": nn.Embedding(peer.num_nodes, WIDTH), "layer": layer})
    return peer.train_rows(model, lambda model: rows_of(call(model["layer"], peer, model["table"].weight)))


def _no_gradient(peer: Peer, layer: nn.Module, call: Call) -> Any:
    model = peer.distribute(layer).eval()
    rows = peer.x
    with torch.no_grad():
        plain = rows_of(call(model, peer, rows))
    with torch.inference_mode():
        inference = rows_of(call(model, peer, rows.detach()))
        mean = float(inference.mean())
    return {"out": plain, "inference": inference.clone(), "mean": mean}


MODES: dict[str, Callable[[Peer, nn.Module, Call], Any]] = {
    "whole": _whole,
    "in place": _in_place,
    "mask": _mask,
    "ids": _ids,
    "table": _table,
    "no gradient": _no_gradient,
}
