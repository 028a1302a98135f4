"""Spans: where arrays and tensors lie in memory, and how much of that is resident."""

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import torch

from distgnn.ops.buffers import Buffers

PAGE = 4096
PRESENT, OF_FILE = np.uint64(1 << 63), np.uint64(1 << 61)  # of an entry of pagemap
OWN = ("distgnn", "partition", "kernels")  # packages whose objects are looked into


class Span(NamedTuple):
    first: int
    last: int


def resident_in(span: Span) -> tuple[int, int]:
    """Resident bytes of a span (anonymous, of files). Without a page table all is taken for anonymous."""
    size = span.last - span.first
    first, last = span.first // PAGE, -(-span.last // PAGE)
    try:
        with open("/proc/self/pagemap", "rb", buffering=0) as table:
            table.seek(8 * first)
            entries = np.frombuffer(table.read(8 * (last - first)), np.uint64)
    except OSError:
        return size, 0
    present = entries & PRESENT != 0
    of_file = int(np.count_nonzero(present & (entries & OF_FILE != 0)))
    anonymous = int(np.count_nonzero(present)) - of_file
    return size * anonymous // (last - first), size * of_file // (last - first)


def apart(spans: list[tuple[str, Span]]) -> list[tuple[str, Span]]:
    """The same spans without what an earlier one has."""
    cuts = sorted({place for _, span in spans for place in span})
    numbers = {place: number for number, place in enumerate(cuts)}
    owners: list[int | None] = [None] * len(cuts)
    for which, (_, span) in reversed(list(enumerate(spans))):
        first, last = numbers[span.first], numbers[span.last]
        owners[first:last] = [which] * (last - first)
    pieces = zip(pairwise(cuts), owners, strict=False)
    return [(spans[which][0], Span(*bounds)) for bounds, which in pieces if which is not None]


def spans_in(holder: Any, seen: dict[int, Any]) -> Iterator[Span]:
    """Spans of the arrays that an object holds: in lists, tuples and dicts, and in attributes of objects of ours.

    Args: seen: objects that were looked into, kept alive so that their ids stay theirs.
    """
    waiting = [holder]
    while waiting:
        one = waiting.pop()
        if isinstance(one, Span):
            yield one
            continue
        if one is None or isinstance(one, (str, int, float, type, Buffers)) or id(one) in seen:
            continue
        seen[id(one)] = one
        if isinstance(one, np.ndarray):
            if one.nbytes:
                first = one.__array_interface__["data"][0]
                yield Span(first, first + one.nbytes)
        elif isinstance(one, torch.Tensor):
            waiting += _inside(one)
            storage = one.untyped_storage() if type(one) in (torch.Tensor, torch.nn.Parameter) else None
            if storage is not None and storage.nbytes():
                yield Span(storage.data_ptr(), storage.data_ptr() + storage.nbytes())
        else:
            waiting += _inside(one)


def _inside(one: Any) -> list[Any]:
    if isinstance(one, dict):
        return list(one.values())
    if isinstance(one, (list, tuple)):
        return list(one)
    if is_dataclass(one) and not isinstance(one, type):
        return [getattr(one, each.name) for each in fields(one)] + list(getattr(one, "__dict__", {}).values())
    ours = type(one).__module__.partition(".")[0] in OWN
    return list(vars(one).values()) if ours and hasattr(one, "__dict__") else []
