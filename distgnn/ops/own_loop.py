"""What a training loop of one's own needs on several ranks: equal weights at the start, gradients summed before a step.

    model = Model(...)
    optimizer = dg.DistributedOptimizer(torch.optim.AdamW(model.parameters()), graph)
    for graph.step in range(epochs):
        optimizer.zero_grad()
        logits = model(graph, graph.feats)
        losses = F.cross_entropy(logits[graph.train_mask], graph.labels[graph.train_mask], reduction="none")
        loss = graph.global_mean(losses)      # of the whole graph, the same number on every rank
        loss.backward()                       # gives each rank its share of the gradient
        optimizer.step()                      # sums the shares, then steps

A loss is a mean over all ranks' rows, and each rank's backward pass gives the part of its gradient that comes from this
rank's rows. Without the sum, every rank takes a different step and the weights drift apart, silently. So once a graph
has several ranks, `refuse_unsummed_steps` makes a step of any `torch.optim` optimiser on gradients that were not summed
an error. An error too is a share that was changed before the sum, clipped for example; a loss that is no number of the
whole graph is warned of.
"""

import warnings
import weakref
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any
from weakref import WeakSet

import numpy as np
import torch
from torch import nn
from torch.optim.optimizer import register_optimizer_step_pre_hook
from torch.utils.weak import WeakTensorKeyDictionary

from distgnn.comm import sum_over_ranks
from distgnn.errors import InputError, RunError, on_all_ranks
from distgnn.ops.function import version_of
from distgnn.ops.step_check import StepCheck, alike_of
from distgnn.ops.sums import broadcast_tensors, clip_gradients, is_rows, sums_of_gradients

SUMMED = -1  # state of a gradient: summed over ranks
WHOLE = -2  # the same, where the backward pass of a loss of all ranks did (`distgnn.rows.gradients`)
MIXED = -3  # the same, where a gradient of an ordinary loss was added to that
ADVICE = (
    "this optimiser steps on gradients that were not summed over the {ranks} ranks of the graph: every rank would take "
    "another step. Write `optimizer = dg.DistributedOptimizer(optimizer, graph)`, or call `dg.sum_gradients(model, "
    "graph)` before `optimizer.step()`"
)
CHANGED = (
    "gradients were changed (clipped?) after `loss.backward()` and before their sum over ranks: every rank changed its "
    "own share, so the result depends on the number of ranks. Write `dg.DistributedOptimizer(optimizer, graph, "
    "clip_grad=1.0)`, or call `dg.sum_gradients(model, graph)` first: the step then does not sum again"
)
OF_ONE_RANK = (
    "the loss was made of this rank's rows (x.to_local(), dg.ops.gather_rows_at), so every rank has another gradient: "
    "take graph.global_mean(losses), or make the loss of rows of all ranks"
)
OWN_MEAN = (
    "the loss is of this rank's rows only, so steps depend on the number of ranks: write `loss = graph.global_mean("
    "losses)` with one loss per row (reduction='none'), or divide their sum by `graph.num_labelled('train')`"
)


@dataclass
class Mark:
    """What is known of a watched parameter's gradient.

    Attributes: state: ranks whose gradients are to be summed, 0 where no backward pass was, or see above; arrived: the
        gradient that the last backward pass left, as `_identity` has it; whole: the gradient that is whole;
        transport: of the graph whose loss it came from; stepped_by: the optimiser that took the last step.
    """

    state: int = 0
    arrived: tuple[int, int | None] | None = None
    whole: weakref.ref[torch.Tensor] | None = None
    transport: Any = None
    stepped_by: Callable[[], Any] | None = None


_marks = WeakTensorKeyDictionary()  # of watched parameters


def _state(parameter: nn.Parameter) -> int:
    mark = _marks.get(parameter)
    return 0 if mark is None else mark.state


def broadcast_parameters(model: nn.Module, graph: Any) -> None:
    """Copy parameters and buffers of rank 0 to all ranks, in place.

    Collective: yes. The model has the same parameters, in the same order, on every rank.

    Example:
        >>> model = dg.nn.GraphConv(graph.num_feats, graph.num_classes)
        >>> dg.broadcast_parameters(model, graph)  # every rank has rank 0's weights
    """
    broadcast_tensors([*model.parameters(), *model.buffers()], graph.comm)


def sum_gradients(model: nn.Module | Iterable[nn.Parameter], graph: Any) -> None:
    """Replace every gradient by its sum over all ranks, the same bits on each.

    Collective: yes. Call it after `backward` and before clipping or stepping, once per step.

    Args:
        model: a module, or its parameters; those without `requires_grad` are left alone. A gradient that is None
            on this rank counts as zero.

    Raises: RunError on every rank, where gradients were changed since the backward pass.

    Example:
        >>> model = dg.nn.GraphConv(graph.num_feats, graph.num_classes)
        >>> model(graph, graph.feats).pow(2).mean().backward()
        >>> dg.sum_gradients(model, graph)  # before optimizer.step()
    """
    parameters = model.parameters() if isinstance(model, nn.Module) else model
    _sum_checked([parameter for parameter in parameters if parameter.requires_grad], graph, again=True)


class DistributedOptimizer:
    """Any `torch.optim` optimiser, summing gradients over ranks before each step.

    `DistributedOptimizer(optimizer, graph)` gives an optimiser of the same class (schedulers, `state_dict` and
    `isinstance` work) that shares the state of the one given, which is not to be used any more.

    Collective: the constructor (copies rank 0's parameters to all ranks) and `step`.

    Args:
        optimizer: a `torch.optim.Optimizer`. Gradients that `sum_gradients` has summed already, to clip them before the
            step, are not summed again. With a closure (LBFGS) gradients are summed after each call of it; its
            result is to be the global loss.
        graph: a DistGraph; on one rank nothing is summed.
        clip_grad: largest Euclidean norm of all gradients together, after the sum; None: any.

    Raises: RunError on every rank from `step`, where gradients were changed (clipped, say) before their sum.

    Source: the interface of Horovod's DistributedOptimizer (Sergeev and Del Balso, 2018, section 3).

    Example:
        >>> model = dg.nn.GraphConv(graph.num_feats, graph.num_classes)
        >>> optimizer = dg.DistributedOptimizer(torch.optim.Adam(model.parameters()), graph)
        >>> model(graph, graph.feats).pow(2).mean().backward()
        >>> optimizer.step()
    """

    def __new__(cls, optimizer: torch.optim.Optimizer, graph: Any, clip_grad: float | None = None) -> Any:
        kind: Any = type(optimizer)
        if not isinstance(optimizer, torch.optim.Optimizer):
            raise TypeError(f"optimizer is {kind.__name__}: expected a torch.optim optimiser that is made already")
        if clip_grad is not None and not clip_grad > 0:
            raise InputError(f"clip_grad is {clip_grad}: expected a norm above 0")
        parameters = _parameters_of(optimizer)
        broadcast_tensors(parameters, graph.comm)
        for parameter in parameters if graph.comm.size > 1 else ():
            _watch(parameter, graph.comm.size)
        members = {"step": _summing_step(kind), "__module__": kind.__module__}
        wrapped: Any = object.__new__(type(kind.__name__, (kind,), members))
        wrapped.__dict__.update(optimizer.__dict__)
        wrapped.__dict__.pop("step", None)  # a scheduler that was made before has put a counting one there
        wrapped._distgnn_graph, wrapped._distgnn_given, wrapped._distgnn_clip = graph, optimizer, clip_grad
        return wrapped


def _summing_step(kind: Any) -> Callable[..., Any]:
    """The method `step` of an optimiser of class `kind`, with the sum over ranks before it."""
    plain = kind.step

    def step(self: Any, closure: Callable[..., Any] | None = None) -> Any:
        def sum_all() -> None:
            parameters = _parameters_of(self)
            wanted = [parameter for parameter in parameters if parameter.requires_grad]
            _refuse_mixed(wanted)
            _sum_checked(wanted, self._distgnn_graph, again=False, optimizer=self)
            if self._distgnn_clip is not None:
                clip_gradients(wanted, self._distgnn_clip)
            mark_summed(parameters, 0)  # the next step's gradients are new, however they come

        self._distgnn_given._opt_called = True  # a scheduler made before looks there
        if closure is None:
            sum_all()
            return plain(self)

        def summed() -> Any:
            with torch.enable_grad():
                loss = closure()
            sum_all()
            return loss

        return plain(self, summed)

    step.hooked = True  # type: ignore[attr-defined]  # torch's own wrapper, with its hooks, is around `plain`
    return step


def _parameters_of(optimizer: Any) -> list[nn.Parameter]:
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]


def _sum_checked(parameters: list[nn.Parameter], graph: Any, again: bool, optimizer: Any = None) -> None:
    """Sum gradients over ranks, unless they were changed before. Collective: yes.

    Args: again: also those that `sum_gradients` has met on every rank since the last step; optimizer: that steps next.
    """
    comm, parameters = graph.comm, [one for one in parameters if not is_rows(one)]
    graph.transport.num_sums += 1
    if comm.size > 1:
        transport = graph.transport
        if not getattr(graph, "knows_rows", False) and not transport.has_global_loss:
            transport.has_global_loss = True  # said once, on rank 0
            if transport.rank == 0:
                warnings.warn(OWN_MEAN, stacklevel=4)
        marks = [_state(parameter) for parameter in parameters]
        met = [mark == WHOLE or (not again and mark == SUMMED) for mark in marks]
        if getattr(graph, "knows_rows", False):
            _check_ordinary([one for one, mark in zip(parameters, marks, strict=True) if mark > 0], comm)
            met = [True] * len(parameters)
        with _entering_step(parameters, graph, [] if optimizer is None else [optimizer]):
            *ranks_met, changed = sum_over_ranks(comm, np.array([*met, any(map(_changed, parameters))], np.int64))
        if changed:
            raise on_all_ranks(RunError(CHANGED))
        missing = [one for one, ranks in zip(parameters, ranks_met, strict=True) if ranks < comm.size]
        for parameter, total in sums_of_gradients(missing, comm):
            if parameter.grad is None:
                parameter.grad = torch.empty_like(parameter)
            parameter.grad.copy_(total)
    mark_summed(parameters)


def _entering_step(parameters: list[nn.Parameter], graph: Any, optimizers: list[Any]) -> AbstractContextManager[Any]:
    """The next collective call compares what enters a step; weights of rows' losses were compared with their sum."""
    alike = alike_of(graph.transport)
    if alike is None:
        return nullcontext()
    new = [one for one in parameters if _state(one) != WHOLE]
    models = [model() for model in graph.transport.models]
    modules = [one for model in models for one in ([None] if model is None else model.modules())]
    return StepCheck(new, None, optimizers, modules).compared(alike)


def optimizers_of(parameters: Iterable[torch.Tensor]) -> list[Any]:
    """The optimisers that took the last steps of these parameters, each once; None for one that is gone."""
    found: dict[int, Any] = {}
    for parameter in parameters:
        mark = _marks.get(parameter)
        if mark is not None and mark.stepped_by is not None:
            optimizer = mark.stepped_by()
            found[id(optimizer)] = optimizer
    return list(found.values())


def _check_ordinary(parameters: list[nn.Parameter], comm: Any) -> None:
    """Gradients of a loss of ordinary tensors are whole on every rank already: they are the same. Collective: yes.

    Raises: RunError on every rank, where they differ: the loss was of one rank's rows.
    """
    differ = 0
    for parameter in parameters:
        if parameter.grad is not None:
            mine = np.ascontiguousarray(parameter.grad.detach().to_dense().numpy())
            differ |= not np.array_equal(comm.bcast(mine, root=0), mine, equal_nan=True)
    if comm.allreduce(int(differ)):
        raise on_all_ranks(RunError(OF_ONE_RANK))


def _identity(grad: torch.Tensor | None) -> tuple[int, int | None] | None:
    """Where a gradient lies, and how often it was written to; None where that tells nothing of it alone."""
    if grad is None or grad.layout != torch.strided or grad._is_view():
        return None
    return grad.data_ptr(), version_of(grad)


def _changed(parameter: nn.Parameter) -> bool:
    """Was this unsummed gradient written to, or replaced, since the backward pass left it?"""
    now, mark = _identity(parameter.grad), _marks.get(parameter, Mark())
    return mark.state > 0 and None not in (now, mark.arrived) and now != mark.arrived


def mark_summed(parameters: Iterable[nn.Parameter], mark: int = SUMMED) -> None:
    """Note that the gradients of these parameters have been summed over ranks, by whatever means."""
    for parameter in parameters:
        known = _marks.get(parameter)
        if known is not None:
            known.state = mark


def refuse_unsummed_steps(graph_type: type[Any]) -> None:
    """From now on refuse optimiser steps on unsummed gradients of models that were given a graph of several ranks.

    A module that is called with such a graph has its parameters watched: a gradient that arrives marks its parameter,
    the sum over ranks clears the mark, and a `torch.optim` step on a marked parameter raises RunError.

    Notes: called once per process, when the first graph on several ranks is made. Parameters of modules that never see
        the graph are not watched.
    """
    if _refused_for:
        return
    _refused_for.append(graph_type)
    nn.modules.module.register_module_forward_pre_hook(_watch_module)
    register_optimizer_step_pre_hook(_refuse_unsummed)


LEAVE_OUT = "gradients are summed over ranks already: leave DistributedDataParallel (and init_process_group) out"
_refused_for: list[type[Any]] = []
_watched: WeakSet[nn.Module] = WeakSet()


def _watch_module(module: nn.Module, inputs: tuple[Any, ...]) -> None:
    graphs: list[Any] = [one for one in inputs if isinstance(one, _refused_for[0])]
    if isinstance(module, nn.parallel.DistributedDataParallel):
        if graphs or any(getattr(type(one), "knows_rows", False) for one in inputs):
            raise on_all_ranks(InputError(LEAVE_OUT))
    if not graphs:
        return
    if torch.compiler.is_dynamo_compiling():  # it would look into `_watched`, from which modules go when they die
        torch.compiler.disable(_watch_module)(module, inputs)
        return
    if module in _watched or not torch.is_grad_enabled():
        return
    ranks = max(graph.num_ranks for graph in graphs)
    if ranks > 1:
        for graph in graphs:
            known = [one() for one in graph.transport.models]
            if not any(one is not None and module in set(one.modules()) for one in known):
                graph.transport.models.append(weakref.ref(module))
        _watched.add(module)
        for parameter in module.parameters():
            _watch(parameter, ranks)


def _watch(parameter: nn.Parameter, ranks: int) -> Mark | None:
    """Let every gradient that arrives mark its parameter."""
    known: Mark | None = _marks.get(parameter)
    if known is not None or not parameter.requires_grad or is_rows(parameter):
        return known
    mark = _marks[parameter] = Mark()

    def arrived(one: nn.Parameter) -> None:
        added = mark.whole is not None and mark.whole() is one.grad and mark.state in (WHOLE, MIXED)
        mark.state = MIXED if added else ranks
        mark.arrived = _identity(one.grad)

    parameter.register_post_accumulate_grad_hook(arrived)
    return mark


def _refuse_unsummed(optimizer: torch.optim.Optimizer, _args: Any, _kwargs: Any) -> None:
    if torch.compiler.is_dynamo_compiling():
        torch.compiler.disable(_refuse_unsummed)(optimizer, _args, _kwargs)
        return
    if hasattr(optimizer, "_distgnn_graph"):  # it sums itself; with a closure, inside the step
        return
    parameters = _parameters_of(optimizer)
    ranks = max(map(_state, parameters), default=0)
    if ranks > 0:
        raise RunError(ADVICE.format(ranks=ranks))
    _refuse_mixed(parameters)
    _meet(optimizer, parameters)
    mark_summed(parameters, 0)


def _meet(optimizer: torch.optim.Optimizer, parameters: list[nn.Parameter]) -> None:
    """Note who steps. Collective: before the first step of an optimiser on gradients of all ranks' rows.

    Raises: RunError on every rank, where ranks give it other settings.
    """
    marks = [mark for parameter in parameters if (mark := _marks.get(parameter)) and mark.transport is not None]
    alike = alike_of(marks[0].transport) if marks else None
    if alike is None:
        return
    for mark in marks:
        if mark.stepped_by is None or mark.stepped_by() is not optimizer:
            mark.stepped_by = weakref.ref(optimizer)
    if optimizer not in alike.met:
        alike.met.add(optimizer)
        with StepCheck((), None, [optimizer]).compared(alike):
            marks[0].transport.comm.Barrier()


def _refuse_mixed(parameters: list[nn.Parameter]) -> None:
    if any(_state(one) == MIXED for one in parameters):
        raise RunError(
            "gradients of an ordinary loss were added to those of a loss of all ranks: add the losses, then call "
            "`backward()` once"
        )


def watch_whole(parameters: Iterable[nn.Parameter], transport: Any) -> None:
    """Mark gradients that are whole on every rank, and watch what is added to them."""
    for parameter in parameters:
        mark = _watch(parameter, transport.num_ranks) or _marks.setdefault(parameter, Mark())
        mark.transport = transport
        mark.state, mark.whole = WHOLE, None if parameter.grad is None else weakref.ref(parameter.grad)
