"""Functions whose bits depend on the row only, not on how many rows there are: `with RowByRow():`.

A part of the rows, computed again, is then what it was among all of them (`changed.py`). torch's own are not so:

    products               rounded by the place of a row, and by the number of rows: `kernels.product` in their place
    sigmoid, elu, pow, …   the numbers behind the last whole vector of a thread are rounded in another way: made again
"""

from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from distgnn import kernels
from distgnn.ops.aggregation.halo import as_array
from distgnn.ops.edges.arc_blocks import OWN_METADATA, ArcBlocks
from distgnn.rows.row_tensor import METADATA, name_of

OURS = ("knows_rows", "stands_for_arcs")  # marks of classes of tensors
FLOATS = (torch.float32, torch.float64)


class RowByRow(TorchFunctionMode):
    """Within, functions of rows that are the same for any number of rows; without gradients."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs, name = kwargs or {}, name_of(func)
        for kind in types if name not in METADATA and name not in OWN_METADATA else ():
            if any(getattr(kind, mark, False) for mark in OURS) or issubclass(kind, ArcBlocks):
                with self:  # what it computes of ordinary tensors comes here again
                    return kind.__torch_function__(func, types, args, kwargs)
        plain = all(kind in (torch.Tensor, torch.nn.Parameter) for kind in types)
        if plain and name.removesuffix("_") in BY_VECTORS:
            return _by_vectors(func, args, kwargs)
        handler = HANDLERS.get(name) if plain else None
        found = None if handler is None else handler(*args, **kwargs)
        return func(*args, **kwargs) if found is None else found


def _is_held(one: Any) -> bool:
    """Is this an ordinary tensor of floats with numbers? Shapes without any are asked for, too."""
    held = isinstance(one, torch.Tensor) and one.layout == torch.strided and one.device.type == "cpu"
    return held and one.dtype in FLOATS


def _product(rows: Any, weight: Any) -> torch.Tensor | None:
    if not _is_held(rows) or not _is_held(weight) or rows.dtype != weight.dtype or weight.dim() != 2 or rows.dim() < 2:
        return None
    if not rows.numel() or not weight.numel() or rows.shape[-1] != len(weight):
        return None
    flat = rows.detach().reshape(-1, rows.shape[-1])
    made = torch.from_numpy(kernels.product(as_array(flat), as_array(weight)))
    return made.view(*rows.shape[:-1], weight.shape[1])


def _linear(input: Any, weight: Any, bias: Any = None) -> torch.Tensor | None:
    made = _product(input, weight.t()) if weight.dim() == 2 else None
    return made if made is None or bias is None else made.add_(bias.detach())


def _matmul(left: Any, right: Any, *, out: Any = None) -> torch.Tensor | None:
    made = _product(left, right)
    return made if made is None or out is None else out.copy_(made)


def _addmm(input: Any, left: Any, right: Any, *, beta: float = 1, alpha: float = 1, out: Any = None) -> Any:
    made = _product(left, right)
    if made is None:
        return None
    made = made if alpha == 1 else made.mul_(alpha)
    made = made if beta == 0 else made.add_(input, alpha=beta)
    return made if out is None else out.copy_(made)


def _by_vectors(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What a function of single numbers gives, all of them by vectors."""
    rows, others = args[0] if args else None, args[1:]
    numbers = not any(isinstance(one, torch.Tensor) for one in (*others, *kwargs.values()))
    if rows is None or not _is_held(rows) or not numbers or not rows.numel():
        return func(*args, **kwargs)
    if not rows.is_contiguous():
        made = _by_vectors(func, (rows.contiguous(), *others), kwargs)
        return rows.copy_(made) if func.__name__.endswith("_") or kwargs.get("inplace") else made
    flat, again = rows.detach().reshape(-1), []
    share = -(-len(flat) // max(1, min(torch.get_num_threads(), -(-len(flat) // GRAIN))))
    for first in range(0, len(flat), share):
        end = min(first + share, len(flat))
        place = slice(end - (end - first) % VECTORS, end)
        if place.start < end:
            piece = flat.new_ones(VECTORS)
            piece[: end - place.start] = flat[place]
            again.append((place, func(piece, *others, **kwargs)[: end - place.start].clone()))
    made = func(*args, **kwargs)
    for place, numbers_there in again:
        made.view(-1)[place] = numbers_there
    return made


BY_VECTORS = frozenset("sigmoid logsigmoid softplus elu gelu silu mish selu celu pow __pow__ exp2 hardswish".split())
VECTORS = 64  # numbers: whole vectors of any processor, unrolled
GRAIN = 1 << 15  # numbers of a thread at least: torch's constant
HANDLERS: dict[str, Any] = {
    "linear": _linear,
    "addmm": _addmm,
    "addmm_": lambda out, *args, **kwargs: _addmm(out, *args, out=out, **kwargs),
    **dict.fromkeys(("matmul", "__matmul__", "mm"), _matmul),
}
