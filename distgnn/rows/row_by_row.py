"""Functions that work number by number, or within a row: every rank does its own."""

from typing import Any

import numpy as np
import torch

from distgnn.ops.edges import arc_blocks
from distgnn.ops.rowwise.activation import relu as ops_relu
from distgnn.rows.align import Aligned, local_in
from distgnn.rows.row_tensor import (
    HANDLERS,
    RowTensor,
    gathered,
    handles,
    into_ordinary,
    local_of,
    named,
    outer_requires_grad,
    refuse,
    rows_of,
)

ELEMENTWISE = """
abs absolute acos acosh add addcdiv addcmul angle arccos arccosh arcsin arcsinh arctan arctan2 arctanh asin asinh atan
atan2 atanh bitwise_and bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor ceil celu clamp
clamp_max clamp_min clip complex conj conj_physical copysign cos cosh deg2rad digamma div divide elu eq erf erfc erfinv
exp exp2 expm1 fix float_power floor floor_divide fmax fmin fmod frac gcd ge gelu greater greater_equal gt hardshrink
hardsigmoid hardswish hardtanh heaviside hypot i0 igamma igammac isclose isfinite isinf isnan isneginf isposinf isreal
lcm ldexp le leaky_relu lerp less less_equal lgamma log log_sigmoid log10 log1p log2 logaddexp logaddexp2 logical_and
logical_not logical_or logical_xor logit logsigmoid lt masked_fill maximum minimum mish mul multiply mvlgamma nan_to_num
ne neg negative nextafter not_equal polar polygamma positive pow rad2deg reciprocal relu6 remainder round rsqrt rsub
selu sgn sigmoid sign signbit silu sin sinc sinh softplus softshrink softsign sqrt square sub subtract tan tanh
tanhshrink threshold _threshold true_divide trunc xlogy resolve_conj resolve_neg real imag special_expit special_entr
special_ndtr special_log_ndtr
__add__ __radd__ __sub__ __rsub__ __mul__ __rmul__ __truediv__ __rtruediv__ __div__ __rdiv__ __floordiv__ __rfloordiv__
__mod__ __rmod__ __pow__ __rpow__ __and__ __rand__ __or__ __ror__ __xor__ __rxor__ __neg__ __pos__ __abs__ __invert__
__eq__ __ne__ __lt__ __le__ __gt__ __ge__ __lshift__ __rlshift__ __rshift__ __rrshift__
""".split()
IN_PLACE_OPERATORS = [
    f"__i{name}__" for name in "add sub mul truediv floordiv mod pow and or xor lshift rshift".split()
]
SAME = """
float double half bfloat16 long int short bool char byte to type type_as cpu contiguous clone detach alias detach_copy
float32 view_as_real requires_grad_copy zeros_like ones_like full_like empty_like
""".split()
FLOATS = (torch.float32, torch.float64)
MADE_NEW = ("new_zeros", "new_ones", "new_full", "new_empty")


def elementwise(func: Any, *args: Any, inplace: bool = False, out: Any = None, **kwargs: Any) -> Any:
    if inplace:
        return in_place(func, *args, inplace=True, **kwargs)
    if isinstance(out, RowTensor):
        return out.copy_(elementwise(func, *args, **kwargs))
    if out is not None:
        refuse(func.__name__, "leave out= out")
    together, found = _on_local(func, args, kwargs)
    return together.rows(found)


def _on_local(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Aligned, Any]:
    """(what the arguments have in common, what the function gives of this rank's parts of them)."""
    together = Aligned(func.__name__, (*args, *kwargs.values()))
    local = {name: together.local(value) for name, value in kwargs.items()}
    return together, func(*map(together.local, args), **local)


def in_place(func: Any, *args: Any, **kwargs: Any) -> Any:
    """The same, written into the first argument."""
    if not isinstance(args[0], RowTensor):
        return into_ordinary(func, *args, **kwargs)
    _on_local(func, args, kwargs)
    return again(args[0])


def again(rows: RowTensor) -> RowTensor:
    """Rows that were written into: what autograd says of them may be new, and so may be what they are a part of."""
    if rows.written_back is not None:
        base, index = rows.written_back
        base[index] = rows
    if rows.inner.requires_grad != outer_requires_grad(rows):
        with torch._C.DisableTorchFunctionSubclass():
            rows.requires_grad_(rows.inner.requires_grad)
    return rows


arc_blocks.ELEMENTWISE.update((*ELEMENTWISE, "relu"))
for _name in ELEMENTWISE:
    HANDLERS[_name] = elementwise
    if not _name.startswith("__"):
        HANDLERS[_name + "_"], HANDLERS[f"special_{_name}"] = in_place, elementwise
for _name in (*IN_PLACE_OPERATORS, "copy_", "relu_", "where_", "squeeze_copy_", "zero_", "fill_", "masked_fill_"):
    HANDLERS[_name] = in_place


@handles("relu")
def relu(func: Any, input: RowTensor, inplace: bool = False) -> RowTensor:
    """Of hidden rows of vertices in one pass with a dropout that follows."""
    if inplace:
        return in_place(torch.relu_, input)
    space, inner = input.row_space, input.inner
    hidden = space is space.graph.vertex_space and input.row_dim == 0 and inner.dim() == 2 and inner.dtype in FLOATS
    if hidden and inner.requires_grad and torch.is_grad_enabled():
        return input.like(ops_relu(space.graph, inner))
    if hidden and not torch.is_grad_enabled() and space.graph.buffers.lean:  # its memory is known there
        return input.like(torch.clamp_min(inner, 0, out=space.graph.buffers.empty(*inner.shape, inner.dtype)))
    return input.like(torch.relu(inner))


@handles("where")
def where(func: Any, *args: Any, **kwargs: Any) -> Any:
    """With three arguments, elementwise; with one, `nonzero`."""
    if len(args) + len(kwargs) == 1:
        return torch.nonzero(*args, *kwargs.values(), as_tuple=True)
    return elementwise(func, *args, **kwargs)


@handles(*SAME)
def same(func: Any, input: Any, *args: Any, **kwargs: Any) -> Any:
    """Another dtype, a copy, other numbers of the same kind: the same rows."""
    found = func(local_of(input), *map(local_of, args), **kwargs)
    if not isinstance(input, RowTensor):  # plain.to(rows), plain.type_as(rows): only the dtype is meant
        return found
    if found is input.inner:
        return input
    return input.like(found) if isinstance(found, torch.Tensor) else found


@handles(*MADE_NEW)
def made_new(func: Any, rows: RowTensor, *args: Any, size: Any = None, **kwargs: Any) -> torch.Tensor:
    """Rows where the size begins with the number of all rows; else an ordinary tensor."""
    if size is None:
        many = args and isinstance(args[0], list | tuple)
        size, args = (args[0], args[1:]) if many else (args, ())
    size, space = [int(number) for number in size], rows.row_space
    graph = space.graph
    for wanted in (space, graph.vertex_space, graph.arc_space):
        if rows.row_dim == 0 and size and size[0] == wanted.num_global:
            return rows_of(func(rows.inner, (wanted.num_local, *size[1:]), *args, **kwargs), wanted)
    return func(rows.inner, tuple(size), *args, **kwargs)


# --- within a row ------------------------------------------------------------------------------------------------


@handles("prelu", "isin", "bucketize")
def first_only(func: Any, input: Any, *args: Any, **kwargs: Any) -> RowTensor:
    """The first argument has the rows, in dimension 0; the others are ordinary and as they are."""
    if not isinstance(input, RowTensor) or input.row_dim != 0 or any(isinstance(one, RowTensor) for one in args):
        refuse(func.__name__)
    return rows_of(func(input.inner, *map(local_of, args), **kwargs), input.row_space)


@handles("searchsorted")
def searchsorted(func: Any, sorted_sequence: Any, input: Any, **kwargs: Any) -> RowTensor:
    """Places of rows in an ordinary sequence."""
    if not isinstance(input, RowTensor) or isinstance(sorted_sequence, RowTensor) or sorted_sequence.dim() != 1:
        refuse("searchsorted", "give it an ordinary sequence of one dimension, and rows to look up in it")
    return input.like(func(local_of(sorted_sequence), input.inner, **kwargs))


@handles(
    "group_norm", "max_pool1d", "avg_pool1d", "conv1d", "adaptive_avg_pool1d", "adaptive_max_pool1d", "interpolate"
)
def of_each_row(func: Any, input: Any, *args: Any, **kwargs: Any) -> RowTensor:
    """Functions that treat dimension 0 as a batch."""
    if isinstance(input, RowTensor) and input.dim() < 3 and func.__name__ != "group_norm":
        refuse(func.__name__, "it would run over the rows: give it [rows, channels, length]")
    return first_only(func, input, *args, **kwargs)


@handles("pad")
def padded(func: Any, input: Any, pad: Any, *args: Any, **kwargs: Any) -> RowTensor:
    if len(pad) >= 2 * input.dim():
        refuse("pad", "rows of all ranks cannot be padded: add vertices before the graph is cut")
    return first_only(func, input, pad, *args, **kwargs)


@handles("layer_norm", "rms_norm")
def layer_norm(func: Any, input: Any, normalized_shape: Any = (), *args: Any, **kwargs: Any) -> RowTensor:
    """Over the last dimensions, none of which may count rows."""
    if not isinstance(input, RowTensor) or input.dim() - input.row_dim <= len(normalized_shape):
        refuse(func.__name__, "write x.mean() and x.var(), which are over the rows of all ranks")
    return input.like(func(input.inner, normalized_shape, *map(local_of, args), **kwargs))


@handles("embedding")
def embedding(func: Any, *args: Any, **kwargs: Any) -> Any:
    """Rows of a table by ids: of an ordinary table each rank its own; of a table of rows, by global id."""
    given = named(func, args, kwargs)
    ids, weight = given["input"], given["weight"]
    if not isinstance(weight, RowTensor):
        return ids.like(func(**{name: local_of(value) for name, value in given.items()}))
    if any(given.get(name) is not None for name in ("padding_idx", "max_norm")) or given.get("scale_grad_by_freq"):
        refuse("embedding", "a table of rows of all ranks has no padding_idx, max_norm or scale_grad_by_freq")
    return weight[ids]


@handles("one_hot")
def one_hot(func: Any, input: RowTensor, num_classes: int = -1) -> RowTensor:
    """Classes as columns; without a number of classes, as many as all ranks' rows have."""
    return input.like(func(input.inner, int(input.max()) + 1 if num_classes == -1 else num_classes))


@handles("gru_cell", "lstm_cell", "rnn_tanh_cell", "rnn_relu_cell")
def recurrent_cell(func: Any, rows: Any, state: Any, *weights: Any, **kwargs: Any) -> Any:
    many = isinstance(state, list | tuple)
    together = Aligned(func.__name__, (rows, *(state if many else [state])))
    local = [together.local(one) for one in (state if many else [state])]
    found = func(together.local(rows), type(state)(local) if many else local[0], *map(local_of, weights), **kwargs)
    return together.rows(found)


@handles("lstm", "gru", "rnn_tanh", "rnn_relu")
def recurrent(func: Any, rows: Any, state: Any, weights: Any, *options: Any) -> Any:
    """A sequence for each row: rows [N, L, D] with batch_first."""
    _bias, _layers, dropout, training, _two_ways, batch_first = options
    if not isinstance(rows, RowTensor) or not batch_first or rows.row_dim != 0 or (dropout and training):
        refuse(func.__name__, "give it rows [N, L, D] with batch_first=True and without dropout between layers")
    space, many = rows.row_space, isinstance(state, list | tuple)
    states = [local_in(one, space, 1, func.__name__) for one in (state if many else [state])]
    out, *last = func(rows.inner, tuple(states) if many else states[0], list(map(local_of, weights)), *options)
    return (rows_of(out, space), *(rows_of(one, space, 1) for one in last))


# --- on the way out of torch: all rows in the source's order, on every rank ------------------------------------------


@handles("numpy", "tolist", "__array__", "__dlpack__", "__reduce_ex__")
def exported(func: Any, rows: RowTensor, *args: Any, **kwargs: Any) -> Any:
    if func.__name__ == "numpy" and rows.requires_grad:
        raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")
    return func(gathered(rows), *args, **kwargs)


@handles("item", "__float__", "__int__", "__index__", "__bool__", "is_nonzero")
def item(func: Any, input: RowTensor) -> Any:
    if input.numel() != 1:
        refuse(func.__name__, "take .sum(), .mean() or a row first")
    return func(gathered(input))


HANDLERS.update(
    {
        "new_tensor": lambda func, rows, *args, **kwargs: func(rows.inner, *args, **kwargs),
        "__contains__": lambda func, rows, value: bool((rows == value).any()),
        "__array_wrap__": lambda func, rows, array, *_: torch.from_numpy(np.asarray(array)),  # NumPy's, of all rows
    }
)
