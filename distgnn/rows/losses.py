"""Losses of rows: a mean or a sum over the rows of all ranks, or one number for each row."""

from typing import Any

import torch

from distgnn.rows.align import Aligned, in_space, local_in, part_of
from distgnn.rows.row_tensor import RowTensor, handles, local_of, refuse, rows_of, whole_of

ELEMENTWISE = (
    *("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy", "kl_div", "poisson_nll_loss"),
    *("binary_cross_entropy_with_logits", "soft_margin_loss", "gaussian_nll_loss", "hinge_embedding_loss"),
)
OF_ROWS = (
    *("margin_ranking_loss", "cosine_embedding_loss", "triplet_margin_loss", "multi_margin_loss"),
    *("multilabel_margin_loss", "multilabel_soft_margin_loss"),
)
NAMES: dict[str, tuple[str, ...]] = {
    "cross_entropy": ("input", "target", "weight", "size_average", "ignore_index", "reduce", "reduction"),
    "nll_loss": ("input", "target", "weight", "size_average", "ignore_index", "reduce", "reduction"),
    "binary_cross_entropy": ("input", "target", "weight", "size_average", "reduce", "reduction"),
    "binary_cross_entropy_with_logits": (
        *("input", "target", "weight", "size_average", "reduce", "reduction", "pos_weight"),
    ),
    "kl_div": ("input", "target", "size_average", "reduce", "reduction", "log_target"),
    "huber_loss": ("input", "target", "reduction", "delta", "weight"),
    "smooth_l1_loss": ("input", "target", "size_average", "reduce", "reduction", "beta"),
    "poisson_nll_loss": ("input", "target", "log_input", "full", "size_average", "eps", "reduce", "reduction"),
    "gaussian_nll_loss": ("input", "target", "var", "full", "eps", "reduction"),
    "hinge_embedding_loss": ("input", "target", "margin", "size_average", "reduce", "reduction"),
    "multi_margin_loss": ("input", "target", "p", "margin", "weight", "size_average", "reduce", "reduction"),
    "multilabel_soft_margin_loss": ("input", "target", "weight", "size_average", "reduce", "reduction"),
    "margin_ranking_loss": ("input1", "input2", "target", "margin", "size_average", "reduce", "reduction"),
    "cosine_embedding_loss": ("input1", "input2", "target", "margin", "size_average", "reduce", "reduction"),
    "triplet_margin_loss": (
        *("anchor", "positive", "negative", "margin", "p", "eps", "swap", "size_average", "reduce", "reduction"),
    ),
}
USUAL = ("input", "target", "size_average", "reduce", "reduction", "weight")
PER_CLASS = ("weight", "pos_weight")  # ordinary tensors with a number per class, beside those with one per row


def _given(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """(the arguments by name, the reduction)."""
    given = dict(zip(NAMES.get(func.__name__, USUAL), args, strict=False)) | kwargs
    reduction = given.pop("reduction", "mean")
    if given.pop("size_average", None) is not None or given.pop("reduce", None) is not None:
        refuse(func.__name__, "size_average and reduce are old: give reduction='mean', 'sum' or 'none'")
    return given, reduction


def _each_of_rows(func: Any, given: dict[str, Any]) -> RowTensor:
    """The loss without reduction, where the first dimension of every argument counts rows."""
    first = next(value for value in given.values() if isinstance(value, RowTensor))
    space, local = first.row_space, {}
    for name, value in given.items():
        if isinstance(value, RowTensor):
            if value.row_dim != 0:
                refuse(func.__name__, "rows are the first dimension of scores and targets")
            value = in_space(value, space).inner
        elif isinstance(value, torch.Tensor) and value.dim() and name not in PER_CLASS:
            value = part_of(local_of(value), space, 0, func.__name__)
        local[name] = local_of(value)
    return rows_of(func(**local, reduction="none"), space)


def _each(func: Any, given: dict[str, Any]) -> RowTensor:
    """The loss without reduction, number by number."""
    classes = {}
    for name in PER_CLASS:
        value = given.get(name)
        if isinstance(value, torch.Tensor) and not isinstance(value, RowTensor) and value.dim() < given["input"].dim():
            classes[name] = value
    others = {name: value for name, value in given.items() if name not in classes}
    together = Aligned(func.__name__, others.values())
    local = {name: together.local(value) for name, value in others.items()}
    local |= {name: local_of(value) for name, value in classes.items()}
    found = func(**local, reduction="none")
    first = next(value for value in others.values() if isinstance(value, RowTensor))
    return rows_of(found, together.space, first.row_dim)


@handles(*ELEMENTWISE, *OF_ROWS)
def loss(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """One number for each row or entry, then its mean or sum over all ranks."""
    given, reduction = _given(func, args, kwargs)
    each = _each_of_rows(func, given) if func.__name__ in OF_ROWS else _each(func, given)
    if reduction == "batchmean":
        return each.sum() / each.shape[0]
    return _reduced(each, reduction)


def _reduced(each: RowTensor, reduction: str) -> Any:
    if reduction == "none":
        return each
    return each.sum() if reduction == "sum" else each.mean()


@handles("cross_entropy", "nll_loss")
def cross_entropy(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Classes: the mean is over the weights of the targets that count, as in torch."""
    given, reduction = _given(func, args, kwargs)
    each, target = _each_of_rows(func, given), given["target"]
    if reduction != "mean":
        return _reduced(each, reduction)
    if target.is_floating_point():
        return each.mean()
    weight, ignored = given.get("weight"), given.get("ignore_index", -100)
    classes = local_in(target, each.row_space, 0, func.__name__)
    counts = (classes != ignored).double()
    if weight is not None:
        counts = counts * local_of(weight).detach()[classes.clamp(min=0)]
    count = rows_of(counts, each.row_space).sum()
    return whole_of(local_of(each.sum()) / local_of(count).to(each.dtype))


@handles("cosine_loss", "ctc_loss", "triplet_margin_with_distance_loss", "multi_head_attention_forward")
def refused(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    refuse(func.__name__, "attention of every row with every row needs all rows: use attention along arcs (GATConv)")


@handles("scaled_dot_product_attention")
def dot_attention(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Within each row (dimension 0 counts rows): local. Among rows: refused."""
    rows = [one for one in args if isinstance(one, torch.Tensor)]
    if any(not isinstance(one, RowTensor) or one.row_dim != 0 or one.dim() < 3 for one in rows) or kwargs.get(
        "dropout_p"
    ):
        refused(func, args, kwargs)
    together = Aligned(func.__name__, rows)
    return together.rows(func(*map(together.local, args), **kwargs))
