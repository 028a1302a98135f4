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
from distgnn.ops.gradients import sums_of_gradients
from distgnn.ops.own_loop import mark_summed, optimizers_of, watch_whole
from distgnn.ops.step_check import StepCheck, alike_of
from distgnn.rows.row_by_row import again
from distgnn.rows.row_tensor import OWN_FUNCTION, WHOLE, RowTensor, handles, local_of, refuse

# leaves whose rows are this rank's: their gradient is whole already
own_rows: WeakTensorKeyDictionary = WeakTensorKeyDictionary()
SPARSE = (
    "sparse gradients of a table are not summed over ranks: make the table with sparse=False, or dg.nn.NodeEmbedding"
)
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


def _backward(loss: torch.Tensor, gradient: Any = None, *args: Any, **kwargs: Any) -> None:
    """`loss.backward()`. Collective: yes."""
    plain = local_of(loss)
    start = torch.ones_like(plain) if gradient is None else local_of(gradient)
    if plain.numel() != 1 and gradient is None:
        raise RuntimeError("grad can be implicitly created only for scalar outputs")
    leaves, transport = _leaves(plain)
    if transport is None:
        plain.backward(start, *args, **kwargs)
        return
    transport.has_global_loss, comm = True, transport.comm
    alike = alike_of(transport)
    check = None if alike is None else StepCheck(leaves, plain, optimizers_of(leaves))
    mark_summed(leaves, 0)  # type: ignore[arg-type]  # what arrives now is not added to a whole gradient
    before = [leaf.grad for leaf in leaves]
    for leaf in leaves:
        leaf.grad = None
    if any(one is not None and one.is_sparse for one in before):
        raise InputError(SPARSE)
    plain.backward(start if comm.rank == 0 else torch.zeros_like(start), *args, **kwargs)
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
    outputs = list(outputs) if isinstance(outputs, list | tuple) else [outputs]
    inputs = list(inputs) if isinstance(inputs, list | tuple) else [inputs]
    if kwargs.get("create_graph"):
        refuse("autograd.grad", "a second derivative (create_graph=True) of rows is not there")
    transport = _leaves(*(local_of(one) for one in outputs))[1]
    given = list(grad_outputs) if isinstance(grad_outputs, list | tuple) else [grad_outputs] * len(outputs)
    starts = [
        torch.ones_like(local_of(one)) if start is None else local_of(start)
        for one, start in zip(outputs, given, strict=True)
    ]
    if transport is not None and transport.comm.rank:
        starts = [
            start if isinstance(one, RowTensor) else torch.zeros_like(start)
            for one, start in zip(outputs, starts, strict=True)
        ]
    found = torch.autograd.grad(
        [local_of(one) for one in outputs], [local_of(one) for one in inputs], starts, *args, **kwargs
    )
    out: list[Any] = []
    for one, grad in zip(inputs, found, strict=True):
        if isinstance(one, RowTensor):
            out.append(None if grad is None else one.like(grad))
        elif grad is None or transport is None:
            out.append(grad)
        else:
            out.append(torch.from_numpy(sum_over_ranks(transport.comm, np.ascontiguousarray(grad.numpy()))))
    return tuple(out)


WHOLE["backward"], WHOLE["grad"] = _backward, _grad


@handles("backward")
def backward(func: Any, rows: RowTensor, gradient: Any = None, *args: Any, **kwargs: Any) -> None:
    """Args: args, kwargs: as of `torch.Tensor.backward`."""
    if not isinstance(gradient, RowTensor):
        raise InputError("backward of rows of all ranks needs one gradient for each row: take .sum() or a loss first")
    (rows * gradient).sum().backward(None, *args, **kwargs)


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


@handles("requires_grad", "is_leaf", "_version", "_is_view", "retains_grad", "output_nr", "_backward_hooks")
def of_inner(func: Any, rows: RowTensor, *args: Any) -> Any:
    return func(rows.inner, *args)


@handles("detach_", "retain_grad")
def on_inner(func: Any, rows: RowTensor) -> RowTensor | None:
    func(rows.inner)
    return again(rows) if func.__name__ == "detach_" else None


@handles("data", "detach")
def data(func: Any, rows: RowTensor, *args: Any) -> RowTensor:
    return rows.like(rows.inner.detach())


@handles("register_hook", "register_post_accumulate_grad_hook")
def register_hook(func: Any, rows: RowTensor, hook: Any) -> Any:
    """The hook gets rows, and may return rows."""
    return rows.inner.register_hook(lambda grad: local_of(hook(rows.like(grad))))


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
