"""Products: rows with ordinary matrices are local, rowsᵀ @ rows is a sum over ranks, rows @ rowsᵀ is refused."""

from typing import Any

import torch

from distgnn.ops.sums import all_sum
from distgnn.rows.align import Aligned, in_space, part_of
from distgnn.rows.reductions import counted
from distgnn.rows.row_tensor import RowTensor, handles, local_of, refuse, rows_of, whole_of

PAIRS = (
    "it makes a number for each pair of rows of all ranks: score the pairs that are needed, "
    "(z[ids_a] * z[ids_b]).sum(-1), take negatives from dg.negative_edges, or run on a folder of one part"
)


@handles("matmul", "__matmul__", "__rmatmul__", "mm", "bmm", "mv", "dot", "inner", "vdot")
def matmul(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A product of matrices: which of the dimensions counts rows decides."""
    left, right = (
        args[:2] if len(args) > 1 else (args[0], kwargs.get("other", kwargs.get("mat2", kwargs.get("tensor"))))
    )
    name = func.__name__
    if name == "__rmatmul__":
        left, right = right, left
    if name == "inner" and min(left.dim(), right.dim()) > 1:
        right = right.transpose(-1, -2)
    return product(left, right, name)


def product(left: Any, right: Any, name: str = "matmul") -> Any:
    """left @ right of rows and ordinary tensors."""
    at_left = left.dim() - left.row_dim if isinstance(left, RowTensor) else 0  # 1: its last dimension, summed over
    at_right = right.dim() - right.row_dim if isinstance(right, RowTensor) else 0
    summed_right = 1 if right.dim() == 1 else 2
    if at_left == 1 or (at_right and at_right == summed_right):
        return _summed(left, right, at_left, at_right, name)
    if at_left and at_right and (at_left > 2) != (at_right > 2):
        refuse(name, PAIRS)
    if at_left == 2 and at_right == 1:
        refuse(name, PAIRS)
    if at_left > 2 or at_right > 2:  # a batch of products, one for each row
        together = Aligned(name, (left, right))
        return together.rows(torch.matmul(together.local(left), together.local(right)))
    rows = left if at_left else right
    found = torch.matmul(local_of(left), local_of(right))
    back = at_left if at_left else at_right
    if at_left and right.dim() == 1:
        back -= 1
    if at_right and left.dim() == 1 and at_right > 1:
        back -= 1
    return rows_of(found, rows.row_space, found.dim() - back)


def _summed(left: Any, right: Any, at_left: int, at_right: int, name: str) -> torch.Tensor:
    """A product that sums over rows: what it gives is the same on every rank."""
    summed_right = 1 if right.dim() == 1 else 2
    if (at_left not in (0, 1)) or (at_right not in (0, summed_right)):
        refuse(name, PAIRS)
    rows = left if at_left else right
    space = rows.row_space
    here_left = counted(left) if at_left else part_of(local_of(left), space, left.dim() - 1, name)
    if at_right:
        here_right = counted(in_space(right, space))
    else:
        here_right = part_of(local_of(right), space, right.dim() - summed_right, name)
    count = space.num_counted
    here_left, here_right = here_left[..., :count], here_right.narrow(right.dim() - summed_right, 0, count)
    found = torch.matmul(here_left, here_right)
    return whole_of(found if space.comm.size == 1 else all_sum(space.graph, found))


@handles("linear")
def linear(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """x Wᵀ + b."""
    given = dict(zip(("input", "weight", "bias"), args, strict=False)) | kwargs
    rows, weight, bias = given["input"], given["weight"], given.get("bias")
    if isinstance(rows, RowTensor) and rows.row_dim < rows.dim() - 1 and not isinstance(weight, RowTensor):
        return rows.like(func(rows.inner, local_of(weight), local_of(bias)))
    out = product(rows, weight.t())
    return out if bias is None else out + bias


@handles("addmm", "addmv", "addbmm", "baddbmm")
def addmm(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """beta * input + alpha * left @ right."""
    if func.__name__ == "addbmm":
        refuse("addbmm", "write input + (a @ b).sum(0)")
    added, left, right = args
    out = product(left, right, func.__name__)
    alpha, beta = kwargs.get("alpha", 1), kwargs.get("beta", 1)
    out = out if alpha == 1 else out * alpha
    return out + (added if beta == 1 else added * beta)


@handles("outer", "ger")
def outer(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A column of rows times an ordinary row."""
    left, right = args
    return left[:, None] * right[None, :]


@handles("einsum")
def einsum(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The letter of rows is kept (local) or summed over (one sum over ranks)."""
    equation, operands = args[0], list(args[1:])
    if len(operands) == 1 and isinstance(operands[0], list | tuple):
        operands = list(operands[0])
    terms, _, out = equation.replace(" ", "").partition("->")
    terms = terms.split(",")
    if "." in equation or "->" not in equation:
        refuse("einsum", "write every letter and the result: 'nd,de->ne'")
    letters = {term[one.row_dim] for term, one in zip(terms, operands, strict=True) if isinstance(one, RowTensor)}
    if len(letters) != 1:
        refuse("einsum", PAIRS)
    (letter,) = letters
    space = next(one.row_space for one in operands if isinstance(one, RowTensor))
    here: list[Any] = []
    for term, one in zip(terms, operands, strict=True):
        if isinstance(one, RowTensor):
            one = in_space(one, space).inner
        else:
            one = local_of(one)
            if letter in term:
                one = part_of(one, space, term.index(letter), "einsum")
        if letter not in out and letter in term:
            one = one.narrow(term.index(letter), 0, space.num_counted)
        here.append(one)
    found = func(equation, *here)
    if letter in out:
        return rows_of(found, space, out.index(letter))
    return whole_of(found if space.comm.size == 1 else all_sum(space.graph, found))


@handles("bilinear")
def bilinear(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Of two rows each."""
    left, right, *rest = args
    together = Aligned("bilinear", (left, right))
    found = func(together.local(left), together.local(right), *map(local_of, rest), **kwargs)
    return together.rows(found)


@handles("cosine_similarity", "pairwise_distance")
def within_pairs(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Of two rows each, over the columns."""
    names = ("x1", "x2", "dim" if func.__name__ == "cosine_similarity" else "p")
    given = dict(zip(names, args, strict=False)) | kwargs
    left, right = given.pop("x1"), given.pop("x2")
    together = Aligned(func.__name__, (left, right))
    num_dims = max(left.dim(), right.dim())
    dim = given.get("dim", 1) % num_dims if func.__name__ == "cosine_similarity" else num_dims - 1
    row_dim = num_dims - together.back
    if dim == row_dim:
        refuse(func.__name__, "it would run over the rows of all ranks: give dim=-1 for rows [N, D]")
    found = func(together.local(left), together.local(right), **given)
    keeps = given.get("keepdim", False)
    return rows_of(found, together.space, row_dim - (dim < row_dim and not keeps))


@handles("cdist")
def cdist(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Distances of rows to ordinary points."""
    left, right, *rest = args
    if isinstance(left, RowTensor) and not isinstance(right, RowTensor) and left.dim() - left.row_dim == 2:
        return left.like(func(left.inner, local_of(right), *rest, **kwargs))
    if isinstance(right, RowTensor) and not isinstance(left, RowTensor) and right.dim() - right.row_dim == 2:
        found = func(local_of(left), right.inner, *rest, **kwargs)
        return rows_of(found, right.row_space, found.dim() - 1)
    refuse("cdist", PAIRS)
