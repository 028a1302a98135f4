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

from distgnn.ops.dense.dropout import dropout_by_key
from distgnn.rows.row_by_row import again
from distgnn.rows.row_tensor import HANDLERS, RowTensor, handles, refuse, rows_of

KEYS = 1 << 62
U64 = np.uint64


def draw_key(generator: torch.Generator | None = None) -> int:
    """The key of one draw: ranks that seeded torch alike get the same."""
    return int(torch.randint(KEYS, (), generator=generator))


def _mixed(values: np.ndarray) -> np.ndarray:
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
        ids = _mixed(space.draw_ids.astype(U64) + _mixed(np.array([key + number], U64)))
        bits = _mixed(ids[:, None] + np.arange(width, dtype=U64) * U64(0xD1342543DE82EF95))
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


@handles("rand_like")
def rand_like(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> RowTensor:
    rows = args[0]
    dtype = kwargs.get("dtype") or rows.dtype
    return _made(rows, uniform(rows, draw_key(kwargs.get("generator")), dtype), kwargs)


@handles("randn_like")
def randn_like(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> RowTensor:
    rows = args[0]
    return _made(rows, normal(rows, draw_key(kwargs.get("generator")), kwargs.get("dtype") or rows.dtype), kwargs)


@handles("randint_like")
def randint_like(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> RowTensor:
    rows, bounds = args[0], [*args[1:], *(kwargs[name] for name in ("low", "high") if name in kwargs)]
    low, high = (0, bounds[0]) if len(bounds) == 1 else bounds
    found = (uniform(rows, draw_key(), torch.float64) * (high - low)).floor() + low
    return _made(rows, found, kwargs)


@handles("bernoulli")
def bernoulli(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> RowTensor:
    rows, chance = args[0], kwargs.get("p", args[1] if len(args) > 1 else None)
    wanted = rows.inner if chance is None else chance
    return _made(rows, uniform(rows, draw_key(kwargs.get("generator")), torch.float64) < wanted, {})


@handles("normal")
def normal_of(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> RowTensor:
    given = dict(zip(("mean", "std"), args, strict=False)) | kwargs
    mean, std = given.get("mean", 0.0), given.get("std", 1.0)
    rows = mean if isinstance(mean, RowTensor) else std
    noise = rows.like(normal(rows, draw_key(kwargs.get("generator")), rows.dtype))
    return mean + std * noise


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


def _fills(name: str) -> Callable[..., RowTensor]:
    names, make = FILLED[name]

    def fill(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> RowTensor:
        if getattr(func, "__module__", None) == "torch.nn.init":  # it hands over by name
            kwargs = {
                {"a": "from", "b": "to"}.get(one, one): value for one, value in kwargs.items() if value is not None
            }
            with torch.no_grad():
                return fill(None, (kwargs.pop("tensor"),), kwargs)
        rows = args[0]
        given = dict(zip(names, args[1:], strict=False)) | kwargs
        dtype, key = rows.dtype, draw_key(given.pop("generator", None))
        dtype = dtype if dtype.is_floating_point else torch.get_default_dtype()
        rows.inner.copy_(make(rows, key, dtype, *[given[one] for one in names if one in given]))
        return again(rows)

    return fill


for _name in FILLED:
    HANDLERS[_name] = _fills(_name)


@handles("constant_", "kaiming_uniform_")
def initialised(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> RowTensor:
    """Of `torch.nn.init`, which hands over by name."""
    rows = kwargs["tensor"]
    with torch.no_grad():
        if func.__name__ == "constant_":
            return rows.fill_(kwargs["val"])
        mode, slope = kwargs.get("mode", "fan_in"), kwargs.get("a", 0)
        fan = rows.shape[1 if mode == "fan_in" else 0] * math.prod(rows.shape[2:])
        bound = math.sqrt(3.0 / fan) * torch.nn.init.calculate_gain(kwargs.get("nonlinearity", "leaky_relu"), slope)
        return rows.uniform_(-bound, bound)


@handles("bernoulli_")
def bernoulli_(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> RowTensor:
    rows, chance = args[0], kwargs.get("p", args[1] if len(args) > 1 else 0.5)
    wanted = chance.inner if isinstance(chance, RowTensor) else chance
    rows.inner.copy_(uniform(rows, draw_key(kwargs.get("generator")), torch.float64) < wanted)
    return rows


@handles(
    "random_", "geometric_", "cauchy_", "poisson", "multinomial", "binomial", "alpha_dropout", "feature_alpha_dropout"
)
def refused(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    refuse(func.__name__, "draw with torch.rand_like, randn_like, randint_like, bernoulli or F.dropout")


@handles("dropout", "dropout_", "native_dropout")
def dropout(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> RowTensor:
    """A mask of each row's global id."""
    names = ("input", "p", "training" if func.__module__.startswith("torch.nn") else "train", "inplace")
    given = dict(zip(names, args, strict=False)) | kwargs
    rows, chance = given["input"], given.get("p", 0.5)
    if chance < 0 or chance > 1:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {chance}")
    if not given.get("training", given.get("train", True)) or chance == 0:
        return rows
    front = rows.inner.movedim(rows.row_dim, 0)
    key = draw_key()
    if chance == 1:
        out = front * 0
    else:
        out = dropout_by_key(rows.row_space.graph, front, rows.row_space.draw_ids, chance, key)
    out = out.movedim(0, rows.row_dim)
    if given.get("inplace") or func.__name__ == "dropout_":
        rows.inner.copy_(out)
        return again(rows)
    return rows.like(out)


@handles("dropout1d", "dropout2d", "feature_dropout")
def feature_dropout(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> RowTensor:
    """Whole channels of [N, C, L]."""
    given = dict(zip(("input", "p", "training"), args, strict=False)) | kwargs
    rows = given["input"]
    if not given.get("training", True) or not given.get("p", 0.5):
        return rows
    if rows.dim() < 3 or rows.row_dim != 0:
        refuse(func.__name__, "give it rows [N, C, L], or use F.dropout")
    ones = rows_of(torch.ones(rows.inner.shape[:2], dtype=rows.dtype), rows.row_space)
    mask = dropout(torch.nn.functional.dropout, (ones, given.get("p", 0.5)), {})
    return rows * mask.reshape([*mask.shape, *[1] * (rows.dim() - 2)])


@handles("rrelu")
def rrelu(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> torch.Tensor:
    given = dict(zip(("input", "lower", "upper", "training"), args, strict=False)) | kwargs
    rows, low, high = given["input"], given.get("lower", 1 / 8), given.get("upper", 1 / 3)
    if not given.get("training", False):
        return torch.nn.functional.leaky_relu(rows, (low + high) / 2)
    slopes = rows.like(uniform(rows, draw_key(), rows.dtype) * (high - low) + low)
    return torch.where(rows >= 0, rows, rows * slopes)


@handles("gumbel_softmax")
def gumbel_softmax(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> RowTensor:
    given = dict(zip(("logits", "tau", "hard", "eps", "dim"), args, strict=False)) | kwargs
    rows, dim = given["logits"], given.get("dim", -1)
    noise = rows.like(-_exponential(rows, draw_key(), rows.dtype).log())
    soft = ((rows + noise) / given.get("tau", 1)).softmax(dim)
    if not given.get("hard"):
        return soft
    best = soft.detach() == soft.detach().amax(dim, keepdim=True)
    return best.to(soft.dtype) - soft.detach() + soft
