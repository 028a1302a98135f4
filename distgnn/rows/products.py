"""Products: rows with ordinary matrices are local, rowsᵀ @ rows is a sum over ranks, rows @ rowsᵀ is refused."""

from typing import Any

import torch

from distgnn.ops.sums import all_sum
from distgnn.rows.align import Aligned, in_space, local_in, part_of
from distgnn.rows.reductions import counted
from distgnn.rows.row_tensor import HANDLERS, INSTEAD, RowTensor, handles, local_of, refuse, rows_of, whole_of

PAIRS = (
    "it makes a number for each pair of rows of all ranks: score the pairs that are needed, "
    "(z[ids_a] * z[ids_b]).sum(-1), with ids of negatives from torch.randint, or run on a folder of one part"
)


@handles("matmul", "__matmul__", "__rmatmul__", "mm", "bmm", "mv", "dot", "inner", "vdot", "_sparse_mm")
def matmul(func: Any, *args: Any, **kwargs: Any) -> Any:
    """A product of matrices: which of the dimensions counts rows decides."""
    name = func.__name__
    if kwargs.pop("out", None) is not None:
        refuse(name, "leave out= out")
    first = [kwargs.pop("input")] if "input" in kwargs else []  # a user may name it behind the other one
    left, right = (*first, *args, *kwargs.values())
    if name == "__rmatmul__":
        left, right = right, left
    if name == "inner" and min(left.dim(), right.dim()) > 1:
        right = right.transpose(-1, -2)
    return product(left, right, name)


def product(left: Any, right: Any, name: str = "matmul") -> Any:
    at_left = left.dim() - left.row_dim if isinstance(left, RowTensor) else 0  # 1: its last dimension, summed over
    at_right = right.dim() - right.row_dim if isinstance(right, RowTensor) else 0
    summed_right = 1 if right.dim() == 1 else 2
    if at_right >= summed_right and left.layout != torch.strided:
        return _sparse(left, right, name)
    if at_left == 1 and right.layout != torch.strided:
        refuse(name, "write (A.t() @ x).t() for x.t() @ A")
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


def _sparse(matrix: torch.Tensor, rows: RowTensor, name: str) -> RowTensor:
    """A sparse N x N matrix in the source's order times rows: each rank takes its rows of the matrix. Collective."""
    space = rows.row_space
    if rows.dim() > 2 or matrix.shape != (space.num_global, space.num_global):
        refuse(name, "a sparse matrix is [N, N] and rows are [N] or [N, D]: take A.to_dense()")
    every = matrix.to_sparse_coo().coalesce()
    (targets, sources), here = every.indices(), torch.full((space.num_global,), -1)
    here[space.index] = torch.arange(space.num_local)
    mine = here[targets] >= 0
    wanted, columns = sources[mine].unique(return_inverse=True)
    size = space.num_local, len(wanted)
    part = torch.sparse_coo_tensor(
        torch.stack([here[targets[mine]], columns]), every.values()[mine], size, check_invariants=False
    )
    found = space.rows_at(rows.inner, wanted.numpy())
    return rows.like(torch.sparse.mm(part, found.view(len(wanted), -1)).view(space.num_local, *rows.shape[1:]))


@handles("linear")
def linear(func: Any, input: Any, weight: Any, bias: Any = None) -> Any:
    """x Wᵀ + b."""
    if isinstance(input, RowTensor) and input.row_dim < input.dim() - 1 and not isinstance(weight, RowTensor):
        return input.like(func(input.inner, local_of(weight), local_of(bias)))
    out = product(input, weight.t())
    return out if bias is None else out + bias


INSTEAD["addbmm"] = "write input + (a @ b).sum(0)"


@handles("addmm", "addmv", "baddbmm", "_sparse_addmm")
def addmm(func: Any, input: Any, left: Any, right: Any, *, beta: float = 1, alpha: float = 1) -> Any:
    out = product(left, right, func.__name__)
    out = out if alpha == 1 else out * alpha
    return out + (input if beta == 1 else input * beta)


HANDLERS["outer"] = HANDLERS["ger"] = lambda func, input, vec2: input[:, None] * vec2[None, :]


@handles("einsum")
def einsum(func: Any, equation: str, *operands: Any) -> Any:
    """The letter of rows is kept (local) or summed over (one sum over ranks)."""
    if len(operands) == 1 and isinstance(operands[0], list | tuple):
        operands = tuple(operands[0])
    terms, _, out = equation.replace(" ", "").partition("->")
    if "." in equation or "->" not in equation:
        refuse("einsum", "write every letter and the result: 'nd,de->ne'")
    named = list(zip(terms.split(","), operands, strict=True))
    rows = {term[one.row_dim]: one for term, one in reversed(named) if isinstance(one, RowTensor)}
    if len(rows) != 1:
        refuse("einsum", PAIRS)
    ((letter, first),) = rows.items()
    space, here = first.row_space, []
    for term, one in named:
        if isinstance(one, RowTensor) or letter in term:
            one = local_in(one, space, term.index(letter), "einsum")
        if letter not in out and letter in term:
            one = one.narrow(term.index(letter), 0, space.num_counted)
        here.append(local_of(one))
    found = func(equation, *here)
    if letter in out:
        return rows_of(found, space, out.index(letter))
    return whole_of(found if space.comm.size == 1 else all_sum(space.graph, found))


@handles("bilinear")
def bilinear(func: Any, left: Any, right: Any, *args: Any, **kwargs: Any) -> Any:
    together = Aligned("bilinear", (left, right))
    return together.rows(func(together.local(left), together.local(right), *map(local_of, args), **kwargs))


WITHIN = {  # functions of two rows each, over the columns -> their further arguments
    "cosine_similarity": ("dim", "eps"),
    "pairwise_distance": ("p", "eps", "keepdim"),
    **dict.fromkeys(("cross", "linalg_cross"), ("dim",)),
}


@handles(*WITHIN)
def within_pairs(func: Any, x1: Any, x2: Any, *args: Any, **kwargs: Any) -> Any:
    name = func.__name__
    given = dict(zip(WITHIN[name], args, strict=False)) | kwargs
    if "cross" in name:
        given.setdefault("dim", -1)
    together, num_dims = Aligned(name, (x1, x2)), max(x1.dim(), x2.dim())
    dim, row_dim = given.get("dim", 1 if name == "cosine_similarity" else -1) % num_dims, num_dims - together.back
    if dim == row_dim:
        refuse(name, "it would run over the rows of all ranks: give dim=-1 for rows [N, D]")
    found = func(together.local(x1), together.local(x2), **given)
    return rows_of(found, together.space, row_dim - (dim < row_dim and found.dim() < num_dims))


@handles("cdist")
def cdist(func: Any, x1: Any, x2: Any, *args: Any, **kwargs: Any) -> Any:
    """Distances of rows to ordinary points."""
    rows, points = (x1, x2) if isinstance(x1, RowTensor) else (x2, x1)
    if isinstance(points, RowTensor) or rows.dim() - rows.row_dim != 2:
        refuse("cdist", PAIRS)
    found = func(local_of(x1), local_of(x2), *args, **kwargs)
    return rows_of(found, rows.row_space, found.dim() - (2 if rows is x1 else 1))
