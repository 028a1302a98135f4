"""Random numbers for rows: of a key that torch's generator gives, and each row's global id.

The same vertex draws the same numbers on any rank and number of ranks. Ranks take their key from torch's own generator,
so `torch.manual_seed`, `fork_rng` and the recomputation of `torch.utils.checkpoint` repeat them. A single process of
plain torch draws other numbers.

Source: the mixing function of SplitMix64, Steele, Lea and Flood, OOPSLA'14.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from distgnn.ops.rowwise.activation import dropout_by_key
from distgnn.rows.row_by_row import again
from distgnn.rows.row_tensor import INSTEAD, RowTensor, handles, local_of, refuse, rows_of

KEYS = 1 << 62
U64 = np.uint64


def draw_key(rows: RowTensor, generator: torch.Generator | None = None) -> int:
    """The key of one draw for some rows: ranks that seeded torch alike get the same."""
    key, trail = int(torch.randint(KEYS, (), generator=generator)), rows.row_space.trail
    if trail is not None:
        trail.drawn(key)
    return key


def mixed(values: np.ndarray) -> np.ndarray:
    """SplitMix64, in place."""
    values += U64(0x9E3779B97F4A7C15)
    values ^= values >> U64(30)
    values *= U64(0xBF58476D1CE4E5B9)
    values ^= values >> U64(27)
    values *= U64(0x94D049BB133111EB)
    values ^= values >> U64(31)
    return values


def uniform(rows: RowTensor, key: int, dtype: torch.dtype, number: int = 0) -> torch.Tensor:
    """Numbers in [0, 1) for this rank's rows, of the shape of `rows.inner`; `number`: which of several."""
    inner, dim, space = rows.inner, rows.row_dim, rows.row_space
    shape = [inner.shape[dim], *(size for place, size in enumerate(inner.shape) if place != dim)]
    width = math.prod(shape[1:])
    with np.errstate(over="ignore"):
        ids = mixed(space.draw_ids.astype(U64) + mixed(np.array([key + number], U64)))
        bits = mixed(ids[:, None] + np.arange(width, dtype=U64) * U64(0xD1342543DE82EF95))
    if dtype == torch.float64:
        found = torch.from_numpy((bits >> U64(11)).astype(np.float64) * 2.0**-53)
    else:
        found = torch.from_numpy((bits >> U64(40)).astype(np.float32) * np.float32(2.0**-24)).to(dtype)
    return found.view(shape).movedim(0, dim)


def normal(rows: RowTensor, key: int, dtype: torch.dtype) -> torch.Tensor:
    """Standard normal numbers, by Box and Muller."""
    wide = torch.float64 if dtype == torch.float64 else torch.float32
    radius = (-2 * torch.log1p(-uniform(rows, key, wide))).sqrt()
    return (radius * torch.cos(2 * math.pi * uniform(rows, key, wide, 1))).to(dtype)


def _made(rows: RowTensor, values: torch.Tensor, kwargs: dict[str, Any]) -> RowTensor:
    made: Any = rows.like(values.to(kwargs.get("dtype") or rows.dtype))
    return made.requires_grad_() if kwargs.get("requires_grad") else made


@handles("rand_like", "randn_like")
def drawn_like(func: Any, input: RowTensor, *, generator: Any = None, **kwargs: Any) -> RowTensor:
    draw = uniform if func.__name__ == "rand_like" else normal
    return _made(input, draw(input, draw_key(input, generator), kwargs.get("dtype") or input.dtype), kwargs)


@handles("randint_like")
def randint_like(func: Any, input: RowTensor, *bounds: int, **kwargs: Any) -> RowTensor:
    bounds = (*bounds, *(kwargs[name] for name in ("low", "high") if name in kwargs))
    low, high = (0, *bounds) if len(bounds) == 1 else bounds
    return _made(input, (uniform(input, draw_key(input), torch.float64) * (high - low)).floor() + low, kwargs)


@handles("bernoulli", "bernoulli_")
def bernoulli(func: Any, input: RowTensor, p: Any = None, *, generator: Any = None) -> RowTensor:
    in_place = func.__name__ == "bernoulli_"
    chances = p if p is not None else 0.5 if in_place else input
    drawn = uniform(input, draw_key(input, generator), torch.float64) < local_of(chances)
    if not in_place:
        return _made(input, drawn, {})
    input.inner.copy_(drawn)
    return input


@handles("normal")
def normal_of(func: Any, mean: Any = 0.0, std: Any = 1.0, *, generator: Any = None) -> torch.Tensor:
    rows = mean if isinstance(mean, RowTensor) else std
    return mean + std * rows.like(normal(rows, draw_key(rows, generator), rows.dtype))


def _exponential(rows: RowTensor, key: int, dtype: torch.dtype, rate: float = 1.0) -> torch.Tensor:
    return -torch.log1p(-uniform(rows, key, torch.float64)).to(dtype) / rate


FILLED: dict[str, tuple[tuple[str, ...], Callable[..., torch.Tensor]]] = {
    "uniform_": (
        ("from", "to"),
        lambda rows, key, dtype, low=0.0, high=1.0: uniform(rows, key, dtype) * (high - low) + low,
    ),
    "normal_": (("mean", "std"), lambda rows, key, dtype, mean=0.0, std=1.0: normal(rows, key, dtype) * std + mean),
    "exponential_": (("lambd",), _exponential),
    "log_normal_": (
        ("mean", "std"),
        lambda rows, key, dtype, mean=1.0, std=2.0: (normal(rows, key, dtype) * std + mean).exp(),
    ),
}


@handles(*FILLED)
def fill(func: Any, *args: Any, generator: Any = None, **kwargs: Any) -> RowTensor:
    if "tensor" in kwargs:  # of `torch.nn.init`, which hands over by name
        rows = kwargs.pop("tensor")
        kwargs = {{"a": "from", "b": "to"}.get(name, name): value for name, value in kwargs.items()}
        with torch.no_grad():
            return fill(func, rows, generator=generator, **kwargs)
    names, make = FILLED[func.__name__]
    rows, given = args[0], dict(zip(names, args[1:], strict=False)) | kwargs
    dtype = rows.dtype if rows.dtype.is_floating_point else torch.get_default_dtype()
    rows.inner.copy_(make(rows, draw_key(rows, generator), dtype, *[given[name] for name in names if name in given]))
    return again(rows)


@handles("constant_")
def constant(func: Any, tensor: RowTensor, val: float) -> torch.Tensor:
    """Of `torch.nn.init`, which hands its arguments over by name."""
    with torch.no_grad():
        return tensor.fill_(val)


@handles("kaiming_uniform_")
def kaiming(func: Any, tensor: RowTensor, a: float, mode: str, nonlinearity: Any, generator: Any) -> torch.Tensor:
    """Of `torch.nn.init`, too."""
    fan = tensor.shape[1 if mode == "fan_in" else 0] * math.prod(tensor.shape[2:])
    bound = math.sqrt(3.0 / fan) * torch.nn.init.calculate_gain(nonlinearity, a)
    with torch.no_grad():
        return tensor.uniform_(-bound, bound, generator=generator)


BY_OTHERS = "draw with torch.rand_like, randn_like, randint_like, bernoulli or F.dropout"
for _name in "random geometric cauchy poisson multinomial binomial alpha_dropout feature_alpha_dropout".split():
    INSTEAD[_name] = BY_OTHERS
INSTEAD["multinomial"] = "write weights.whole().multinomial(count): ids, the same on every rank"


def _in_place(input: RowTensor, out: Any, inplace: bool) -> RowTensor:
    """`out`, or where the call is to be in place, `input` with its values."""
    if not inplace:
        return out
    input.inner.copy_(out.inner)
    return again(input)


@handles("dropout", "dropout_", "native_dropout")
def dropout(
    func: Any, input: RowTensor, p: float = 0.5, training: bool = True, inplace: bool = False, *, train: bool = True
) -> RowTensor:
    """A mask of each row's global id. The third argument is `train` of `torch.dropout`."""
    if p < 0 or p > 1:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    if not (training and train) or p == 0:
        return input
    front, space, key = input.inner.movedim(input.row_dim, 0), input.row_space, draw_key(input)
    out = front * 0 if p == 1 else dropout_by_key(space.graph, front, space.draw_ids, p, key)
    return _in_place(input, input.like(out.movedim(0, input.row_dim)), inplace or func.__name__ == "dropout_")


@handles("dropout1d", "dropout2d", "feature_dropout")
def feature_dropout(
    func: Any, input: RowTensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> torch.Tensor:
    """Whole channels of [N, C, L]."""
    if not training or not p:
        return input
    if input.dim() < 3 or input.row_dim != 0:
        refuse(func.__name__, "give it rows [N, C, L], or use F.dropout")
    ones = rows_of(torch.ones(input.inner.shape[:2], dtype=input.dtype), input.row_space)
    mask = dropout(torch.nn.functional.dropout, ones, p)
    return _in_place(input, input * mask.reshape([*mask.shape, *[1] * (input.dim() - 2)]), inplace)


@handles("rrelu")
def rrelu(
    func: Any, input: RowTensor, lower: Any = 1 / 8, upper: Any = 1 / 3, training: bool = False, inplace: bool = False
) -> torch.Tensor:
    if not training:
        return torch.nn.functional.leaky_relu(input, (lower + upper) / 2, inplace)
    slopes = input.like(uniform(input, draw_key(input), input.dtype) * (upper - lower) + lower)
    return _in_place(input, torch.where(input >= 0, input, input * slopes), inplace)


@handles("gumbel_softmax")
def gumbel_softmax(
    func: Any, logits: RowTensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1
) -> torch.Tensor:
    noise = logits.like(-_exponential(logits, draw_key(logits), logits.dtype).log())
    soft = ((logits + noise) / tau).softmax(dim)
    if not hard:
        return soft
    best = soft.detach() == soft.detach().amax(dim, keepdim=True)
    return best.to(soft.dtype) - soft.detach() + soft
