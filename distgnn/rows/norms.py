"""Norms over rows: statistics of the rows of all ranks, however many of them a mask leaves."""

from typing import Any

import torch

from distgnn.ops.entry import wide
from distgnn.rows.reductions import moments, number_of
from distgnn.rows.row_tensor import RowTensor, handles, local_of, named, refuse, rows_of


def _normalised(rows: RowTensor, mean: Any, variance: Any, given: dict[str, Any]) -> RowTensor:
    shape = [1, -1] + [1] * (rows.dim() - 2)
    out = (wide(rows.inner) - mean.view(shape)) * torch.rsqrt(wide(variance).view(shape) + given.get("eps", 1e-5))
    return _scaled(rows, out, given)


def _scaled(rows: RowTensor, out: torch.Tensor, given: dict[str, Any]) -> RowTensor:
    shape = [1, -1] + [1] * (rows.dim() - 2)
    weight, bias = local_of(given.get("weight")), local_of(given.get("bias"))
    out = out if weight is None else out * weight.view(shape)
    out = out if bias is None else out + bias.view(shape)
    return rows.like(out.to(given["input"].dtype))


@torch.no_grad()
def _track(running: Any, value: torch.Tensor, share: float) -> None:
    if running is not None:
        running.lerp_(value.detach().to(running.dtype), share)


@handles("batch_norm")
def batch_norm(func: Any, *args: Any, **kwargs: Any) -> Any:
    """[N, C] or [N, C, L] over all but C; the running variance is the unbiased one."""
    given = named(func, args, kwargs)
    rows, mean, variance = given["input"], given.get("running_mean"), given.get("running_var")
    if not isinstance(rows, RowTensor) or rows.row_dim == 1:
        refuse("batch_norm", "the rows are the channels here: give it [N, C]")
    if not given.get("training", False):
        return _normalised(rows, mean, variance, given)
    dims = tuple(dim for dim in range(rows.dim()) if dim != 1)
    count = number_of(rows, dims)
    if count < 2:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {rows.shape}")
    rows = wide(rows)
    spread, middle = moments(rows, dims, False, 0)
    share = given.get("momentum", 0.1)
    _track(mean, middle, share)
    _track(variance, spread * count / max(count - 1, 1), share)
    return _normalised(rows, middle, spread, given)


@handles("instance_norm")
def instance_norm(func: Any, *args: Any, **kwargs: Any) -> Any:
    """[B, C, L] over L: local where rows are B, over all ranks where they are L."""
    given = named(func, args, kwargs)
    rows = given["input"]
    if rows.row_dim == 0:
        if given.get("running_mean") is not None and given.get("use_input_stats", True):
            refuse("instance_norm", "its running statistics would be of one rank: track_running_stats=False")
        local = {name: local_of(value) for name, value in given.items()}
        return rows_of(func(**local), rows.row_space)
    if rows.row_dim == 1:
        refuse("instance_norm", "the rows are the channels here")
    if not given.get("use_input_stats", True):
        return _normalised(rows, given["running_mean"], given["running_var"], given)
    dims = tuple(range(2, rows.dim()))
    rows = wide(rows)
    spread, middle = moments(rows, dims, True, 0)
    count, share = number_of(rows, dims), given.get("momentum", 0.1)
    _track(given.get("running_mean"), middle.mean((0, *dims)), share)
    _track(given.get("running_var"), (spread * count / max(count - 1, 1)).mean((0, *dims)), share)
    return _scaled(rows, (rows.inner - middle) * torch.rsqrt(spread + given.get("eps", 1e-5)), given)
