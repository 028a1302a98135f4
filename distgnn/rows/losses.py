"""Losses of rows: a mean or a sum over the rows of all ranks, or one number for each row."""

from typing import Any

import torch

from distgnn.rows.align import Aligned, in_space, local_in, part_of
from distgnn.rows.row_tensor import INSTEAD, RowTensor, handles, local_of, named, refuse, rows_of, whole_of

ELEMENTWISE = (
    *("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy", "kl_div", "poisson_nll_loss"),
    *("binary_cross_entropy_with_logits", "soft_margin_loss", "gaussian_nll_loss", "hinge_embedding_loss"),
)
OF_ROWS = (
    *("margin_ranking_loss", "cosine_embedding_loss", "triplet_margin_loss", "multi_margin_loss"),
    *("multilabel_margin_loss", "multilabel_soft_margin_loss"),
)
PER_CLASS = ("weight", "pos_weight")  # ordinary tensors with a number per class, beside those with one per row


def _given(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[dict[str, Any], str]:
    given = named(func, args, kwargs)
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
def loss(func: Any, *args: Any, **kwargs: Any) -> Any:
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
def cross_entropy(func: Any, *args: Any, **kwargs: Any) -> Any:
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


NO_PAIRS = "attention of every row with every row needs all rows: use attention along arcs (GATConv)"
INSTEAD["multi_head_attention_forward"] = NO_PAIRS
INSTEAD["triplet_margin_with_distance_loss"] = "write F.triplet_margin_loss, or the distances with relu() and mean()"


@handles("scaled_dot_product_attention")
def dot_attention(func: Any, *args: Any, **kwargs: Any) -> Any:
    """Within each row (dimension 0 counts rows): local. Among rows: refused."""
    rows = [one for one in args if isinstance(one, torch.Tensor)]
    if kwargs.get("dropout_p") or not all(
        isinstance(one, RowTensor) and one.row_dim == 0 and one.dim() >= 3 for one in rows
    ):
        refuse(func.__name__, NO_PAIRS)
    together = Aligned(func.__name__, rows)
    return together.rows(func(*map(together.local, args), **kwargs))
