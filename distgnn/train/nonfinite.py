"""Where a NaN or an infinity came from: the first layer, in the order of the forward pass, whose output has one."""

from typing import Any

import torch
from torch import nn

from distgnn.errors import RunError, on_all_ranks
from distgnn.ops import SparseRows
from distgnn.rows import local_of
from distgnn.train.users_model import drawing, run_model


def explain(model: nn.Module, graph: Any, name: str, loss: float) -> RunError:
    """The error for a step whose loss or gradient is not finite: its name, rank, and the layer it began in.

    Collective: yes; one more forward pass, exact, with the masks of the step. Parameters stay as they were before
    the step; buffers (running statistics) are put back.
    """
    graph.step = graph.step  # masks are numbered from 0 again
    kept = {name: buffer.clone() for name, buffer in model.named_buffers()}
    outputs: list[tuple[str, bool]] = []
    hooks = [module.register_forward_hook(_note(name, outputs)) for name, module in model.named_modules() if name]
    try:
        with torch.no_grad(), drawing(model, graph):
            model.train()
            run_model(model, graph)
    finally:
        for hook in hooks:
            hook.remove()
        for name, buffer in model.named_buffers():
            buffer.copy_(kept[name])
    bad = next((place for place, (_, finite) in enumerate(outputs) if not finite), len(outputs))
    places = graph.comm.allgather((bad, outputs[bad][0] if bad < len(outputs) else ""))
    rows = graph.feats.values if isinstance(graph.feats, SparseRows) else graph.feats
    feats = graph.comm.allgather(rows is not None and not bool(torch.isfinite(torch.as_tensor(rows)).all()))
    error = RunError(f"the loss is {loss} in {name}: {_where(places, feats, model)}")
    on_all_ranks(error)
    return error


def _where(places: list[tuple[int, str]], feats: list[bool], model: nn.Module) -> str:
    if any(feats):
        return f"the input features on rank {feats.index(True)} are not finite"
    broken = next((name for name, p in model.named_parameters() if not bool(torch.isfinite(p).all())), None)
    if broken:
        return f"the weights {broken} were not finite before the step"
    rank = min(range(len(places)), key=lambda rank: places[rank][0])
    if places[rank][1]:
        return f"it began in layer {places[rank][1]} on rank {rank}; lower --lr, or check the features"
    return "every layer's output is finite, so it began in the loss or the gradient; lower --lr"


def _note(name: str, outputs: list[Any]) -> Any:
    def hook(_module: Any, _inputs: Any, output: Any) -> None:
        tensors = output if isinstance(output, tuple | list) else (output,)
        finite = all(bool(torch.isfinite(local_of(tensor)).all()) for tensor in tensors if torch.is_tensor(tensor))
        outputs.append((name, finite))

    return hook
