"""The backward pass of a loss that was made of all ranks' rows.

Every rank computes the same loss. Rank 0 starts the backward pass with 1 and the others with 0: each rank then has a
share of every gradient, and sums over ranks inside (`all_sum`) pass on whole gradients of rows. At the end the shares
of ordinary parameters are added up. So `parameter.grad` is what a single process has, and the same bits on every rank:
clipping, schedulers and any optimiser go on as they are.
"""

from contextlib import nullcontext
from typing import Any

import numpy as np
import torch
from torch.utils.weak import WeakTensorKeyDictionary

from distgnn.comm import sum_over_ranks
from distgnn.errors import InputError, on_all_ranks
from distgnn.ops.function import wide
from distgnn.ops.own_loop import mark_summed, optimizers_of, watch_whole
from distgnn.ops.step_check import StepCheck, alike_of
from distgnn.ops.sums import sums_of_gradients
from distgnn.rows.row_by_row import again
from distgnn.rows.row_tensor import HANDLERS, OWN_FUNCTION, WHOLE, RowTensor, handles, local_of, refuse

# leaves whose rows are this rank's: their gradient is whole already
own_rows: WeakTensorKeyDictionary = WeakTensorKeyDictionary()
SPARSE = (
    "sparse gradients of a table are not summed over ranks: make the table with sparse=False, or dg.nn.NodeEmbedding"
)
TWICE = "a second derivative of rows is not there: leave create_graph=True out"
# parameters in whose place others are: an optimiser that has them is refused
replaced: WeakTensorKeyDictionary = WeakTensorKeyDictionary()


def _leaves(*results: torch.Tensor) -> tuple[list[torch.Tensor], Any]:
    """(ordinary leaves that the results depend on, in an order that ranks share; the transport of sums or None)."""
    found: list[torch.Tensor] = []
    transports: list[Any] = []
    waiting, seen = [result.grad_fn for result in results], set()
    while waiting:
        node = waiting.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        transport = getattr(node, "transport", None)
        if transport is not None and not any(transport is one for one in transports):
            transports.append(transport)
        leaf = getattr(node, "variable", None)
        if leaf is not None and leaf not in own_rows:
            found.append(leaf)
        waiting += [before for before, _ in node.next_functions]
    sizes = {one.comm.size for one in transports}
    if len(sizes) > 1:
        raise InputError(
            "a loss is made of rows of two graphs with other numbers of ranks: call backward for each graph"
        )
    return found, transports[0] if transports else None


def _several(values: Any) -> list[Any]:
    return list(values) if isinstance(values, list | tuple) else [values]


def _backward(
    losses: Any, gradients: Any = None, retain_graph: Any = None, create_graph: bool = False, *others: Any, **named: Any
) -> None:
    """`loss.backward()`, or `torch.autograd.backward` of several. Collective: yes."""
    gradients = named.get("gradient", named.get("grad_tensors", gradients))
    inputs = next((one for one in others if one is not None), named.get("inputs"))
    losses, gradients = _several(losses), _several(gradients)
    plain = [local_of(one) for one in losses]
    starts = []
    for one, start in zip(plain, gradients if len(gradients) == len(plain) else [None] * len(plain), strict=True):
        if start is None and one.numel() != 1:
            raise RuntimeError("grad can be implicitly created only for scalar outputs")
        starts.append(torch.ones_like(one) if start is None else local_of(start))
    leaves, transport = _leaves(*plain)
    how: dict[str, Any] = {"retain_graph": retain_graph, "create_graph": create_graph}
    if inputs is not None:
        how["inputs"] = [local_of(one) for one in _several(inputs)]
        leaves = [leaf for leaf in leaves if any(leaf is one for one in how["inputs"])]
    if transport is None:
        torch.autograd.backward(plain, starts, **how)
        return
    if create_graph:
        refuse("backward", TWICE)
    transport.has_global_loss, comm = True, transport.comm
    alike = alike_of(transport)
    value = plain[0] if len(plain) == 1 else torch.cat([one.detach().reshape(-1).double() for one in plain])
    check = None if alike is None else StepCheck(leaves, value, optimizers_of(leaves))
    mark_summed(leaves, 0)  # type: ignore[arg-type]  # what arrives now is not added to a whole gradient
    before = [leaf.grad for leaf in leaves]
    for leaf in leaves:
        leaf.grad = None
    if any(one is not None and one.is_sparse for one in before):
        raise InputError(SPARSE)
    starts = starts if comm.rank == 0 else [torch.zeros_like(start) for start in starts]
    torch.autograd.backward(plain, starts, **how)
    if any(leaf.grad is not None and leaf.grad.is_sparse for leaf in leaves):
        raise on_all_ranks(InputError(SPARSE))
    with nullcontext() if alike is None or check is None else check.compared(alike):
        for leaf, total in sums_of_gradients(leaves, comm):
            leaf.grad = total
    for leaf, old in zip(leaves, before, strict=True):
        if old is not None:
            leaf.grad = old if leaf.grad is None else old.add_(leaf.grad)
    watch_whole(leaves, transport)  # type: ignore[arg-type]


def _grad(outputs: Any, inputs: Any, grad_outputs: Any = None, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
    """`torch.autograd.grad`: of parameters whole, of rows this rank's rows. Collective: yes."""
    outputs, inputs = _several(outputs), _several(inputs)
    if kwargs.get("create_graph"):
        refuse("autograd.grad", TWICE)
    transport = _leaves(*map(local_of, outputs))[1]
    given = list(grad_outputs) if isinstance(grad_outputs, list | tuple) else [grad_outputs] * len(outputs)
    starts = []
    for one, start in zip(outputs, given, strict=True):
        start = torch.ones_like(local_of(one)) if start is None else local_of(start)
        elsewhere = transport is not None and transport.comm.rank and not isinstance(one, RowTensor)
        starts.append(torch.zeros_like(start) if elsewhere else start)
    found = torch.autograd.grad(list(map(local_of, outputs)), list(map(local_of, inputs)), starts, *args, **kwargs)
    out: list[Any] = []
    for one, grad in zip(inputs, found, strict=True):
        if isinstance(one, RowTensor):
            out.append(None if grad is None else one.like(grad))
        elif grad is None or transport is None:
            out.append(grad)
        else:
            total = sum_over_ranks(transport.comm, np.ascontiguousarray(wide(grad).numpy()))
            out.append(torch.from_numpy(total).to(grad.dtype))
    return tuple(out)


WHOLE["backward"], WHOLE["grad"] = _backward, _grad


@handles("backward")
def backward(func: Any, rows: Any, gradient: Any = None, *args: Any, **kwargs: Any) -> None:
    """Args: rows: one, or several, some of them results of all rows; args, kwargs: as of torch's."""
    outputs, given = _several(rows), _several(kwargs.pop("grad_tensors", gradient))
    given = given if len(given) == len(outputs) else [None] * len(outputs)
    for place, (one, start) in enumerate(zip(outputs, given, strict=True)):
        if isinstance(one, RowTensor):
            if not isinstance(start, RowTensor):
                raise InputError(
                    "backward of rows of all ranks needs one gradient for each row: take .sum() or a loss first"
                )
            outputs[place], given[place] = (one * start).sum(), None
    _backward(outputs, given, *args, **kwargs)


@handles("grad")
def grad_of(func: Any, rows: Any, *args: Any, **kwargs: Any) -> Any:
    """The attribute `grad` of rows, or `torch.autograd.grad`."""
    if getattr(func, "__name__", "") != "__get__":
        return _grad(rows, *args, **kwargs)
    found = rows.inner.grad
    return None if found is None else rows.like(found)


@handles("set grad")
def set_grad(func: Any, rows: RowTensor, value: Any) -> None:
    rows.inner.grad = local_of(value)


@handles("requires_grad_", "set requires_grad")
def requires_grad_(func: Any, rows: RowTensor, requires_grad: bool = True) -> RowTensor:
    rows.inner.requires_grad_(bool(requires_grad))
    if rows.inner.is_leaf and rows.inner.requires_grad:
        own_rows[rows.inner] = True
    return again(rows)


@handles("grad_fn")
def grad_fn(func: Any, rows: RowTensor, *args: Any) -> Any:
    with torch._C.DisableTorchFunctionSubclass():
        outer = rows.grad_fn
    if outer is not None:
        raise InputError(OWN_FUNCTION)
    return rows.inner.grad_fn


@handles("detach_", "retain_grad")
def on_inner(func: Any, rows: RowTensor) -> RowTensor | None:
    func(rows.inner)
    return again(rows) if func.__name__ == "detach_" else None


@handles("set data")
def set_data(func: Any, rows: RowTensor, value: torch.Tensor) -> None:
    with torch.no_grad():
        rows.copy_(value)


@handles("_has_compatible_shallow_copy_type")
def keeps_its_place(func: Any, old: torch.Tensor, new: torch.Tensor) -> bool:
    """Can `model.double()` give a parameter other numbers? With another dtype it becomes another parameter."""
    if old.dtype == new.dtype:
        return True
    replaced[old] = True
    return False


for _name in ("requires_grad", "is_leaf", "_version", "_is_view", "retains_grad", "output_nr", "_backward_hooks"):
    HANDLERS[_name] = lambda func, rows, *args: func(rows.inner, *args)
HANDLERS["data"] = lambda func, rows, *args: rows.like(rows.inner.detach())
for _name in ("register_hook", "register_post_accumulate_grad_hook"):  # a hook gets rows, and may return rows
    HANDLERS[_name] = lambda func, rows, hook: rows.inner.register_hook(lambda grad: local_of(hook(rows.like(grad))))
