"""Space: which rows of the whole a rank has.

A row tensor's first dimension (or another one) counts rows of all ranks. Its space says how many there are, which of
them are here, and in which order a single process would have them.

    Space        n local rows at the global places `places`; Vertices and Arcs are made by the graph
    MaskedRows   the rows of a space where a mask is true
    Share        K places, of which each rank has a block: what `rows[ids]` gives
    Flat         [n, width] as n * width rows
    Joined       several spaces one after the other: what `torch.cat` gives

Legend: n local rows, N rows of all ranks, P ranks.
"""

import hashlib
from collections.abc import Callable, Sequence
from functools import cached_property
from operator import attrgetter
from typing import Any

import numpy as np
import torch

from distgnn.comm import extreme_over_ranks, sum_over_ranks
from distgnn.comm.plans import VertexOwners
from distgnn.errors import InputError, on_all_ranks
from distgnn.ops.function import constants, wide
from distgnn.ops.remote_rows import RowLookup
from distgnn.ops.sums import min_over_ranks

KEPT_LOOKUPS = 8  # of rows by ids that were asked for last


class Space:
    """Rows of all ranks.

    Args:
        graph: the DistGraph (plain tensors).
        num_local, num_global: n, N.
        places: gives the global place of each local row, int64 [n]; called once, when first needed.
        num_counted: local rows that count, the first ones; copies of other ranks' rows stand behind them.
        draw_ids: gives what keys random numbers of each local row, int64 [n]; None: the places.
        kind: a name for errors.
    """

    def __init__(
        self,
        graph: Any,
        num_local: int,
        num_global: int,
        places: Callable[[], np.ndarray],
        *,
        num_counted: int | None = None,
        draw_ids: Callable[[], np.ndarray] | None = None,
        kind: str = "rows",
    ):
        self.graph = graph
        self.trail: Any = vars(graph).get("trail")  # what its rows were made of (origin.py); None: nobody compares it
        self.num_local = num_local
        self.num_global = num_global
        self.kind = kind
        self.num_counted: int = num_local if num_counted is None else num_counted
        self._make_places, self._make_draw_ids = places, draw_ids or (lambda: self.places)
        self.of_type: Any = None  # what its rows are of, in a typed graph: rows of two types do not go together
        self._lookups: dict[bytes, RowLookup] = {}
        self.kept_masks: list[tuple[Any, ...]] = []  # (mask, its version, the rows it chooses): see indexing.py

    transport: Any = property(attrgetter("graph.transport"))
    comm: Any = property(attrgetter("graph.comm"))
    num_owned: Any = property(attrgetter("num_counted"), doc="Rows that others may ask for, as `RowLookup` has it.")

    @cached_property
    def places(self) -> np.ndarray:
        """The global place of each local row, int64 [n]."""
        return np.ascontiguousarray(self._make_places(), dtype=np.int64)

    @cached_property
    def draw_ids(self) -> np.ndarray:
        """What keys the random numbers of each local row, int64 [n]: the same on any number of ranks."""
        return np.ascontiguousarray(self._make_draw_ids(), dtype=np.int64)

    @cached_property
    def index(self) -> torch.Tensor:
        with constants():
            return torch.from_numpy(self.places)

    @cached_property
    def is_whole(self) -> bool:
        """Are all rows here, in their order?"""
        if not self.num_local == self.num_global == self.num_counted:
            return False
        return bool((self.places == np.arange(self.num_global)).all())

    @cached_property
    def owners(self) -> VertexOwners:
        """Which rank has which row. Collective: the first time."""
        return VertexOwners(self.comm, self.places[: self.num_counted])

    def same(self, other: "Space") -> bool:
        """Are the local rows of both at the same places, on every rank? Collective where masks are compared."""
        if self is other or self.num_global != other.num_global:
            return self is other
        return self._matches(other) or other._matches(self)

    def _matches(self, other: "Space") -> bool:
        return False

    def local_part(self, whole: torch.Tensor, dim: int) -> torch.Tensor:
        """This rank's rows of a tensor that every rank has as a whole."""
        return whole if self.is_whole else whole.index_select(dim, self.index)

    def rows_at(self, rows: torch.Tensor, wanted: np.ndarray, agreed: bytes | None = None) -> torch.Tensor:
        """The rows at some places, wherever they are: [n, ...] to [len(wanted), ...].

        Collective: yes, and again in the backward pass.

        Args: agreed: what `digest_of` gave for the ids that all ranks asked for; where it was met before, nobody asks
            again where the rows are.
        """
        lookup = self._lookups.get(agreed) if agreed is not None else None
        if lookup is None:
            with constants():  # what an evaluation in inference mode keeps serves the training after it
                lookup = RowLookup(self, np.ascontiguousarray(wanted, dtype=np.int64))  # type: ignore[arg-type]
        if agreed is not None:
            self._lookups.pop(agreed, None)
            self._lookups[agreed] = lookup
            if len(self._lookups) > KEPT_LOOKUPS:
                del self._lookups[next(iter(self._lookups))]
        if rows.dtype.is_floating_point:
            return lookup.table(wide(rows)).index_select(0, lookup.places).to(rows.dtype)
        found = lookup.table(rows.to(torch.int64).view(torch.float64)).index_select(0, lookup.places)
        return found.view(torch.int64).to(rows.dtype)  # integers travel as the bits of floats


class MaskedRows(Space):
    """The rows of `base` where a mask is true, in the order of a single process.

    Collective: the constructor.

    Args: mask: bool [n] of local rows.
    """

    def __init__(self, base: Space, mask: torch.Tensor):
        self.base = base
        self.rows: torch.Tensor = mask[: base.num_counted].nonzero().view(-1)
        (total,) = sum_over_ranks(base.comm, np.array([len(self.rows)]))
        super().__init__(
            base.graph,
            len(self.rows),
            int(total),
            self._places,
            draw_ids=lambda: base.draw_ids[self.rows.numpy()],
            kind=f"chosen {base.kind}",
        )
        self.of_type = base.of_type

    def _places(self) -> np.ndarray:
        """Collective: every rank's chosen places come here."""
        mine = self.base.places[self.rows.numpy()]
        every = np.sort(np.concatenate(self.comm.allgather(mine)))
        return np.searchsorted(every, mine)

    def _matches(self, other: Space) -> bool:
        if not isinstance(other, MaskedRows) or not self.base.same(other.base):
            return False
        return bool(min_over_ranks(self.comm, int(torch.equal(self.rows, other.rows))))


class Share(Space):
    """K places in blocks: rank p has K p / P to K (p + 1) / P."""

    def __init__(self, graph: Any, count: int):
        rank, ranks = graph.comm.rank, graph.comm.size
        first, last = count * rank // ranks, count * (rank + 1) // ranks
        super().__init__(graph, last - first, count, lambda: np.arange(first, last), kind="rows by id")

    def _matches(self, other: Space) -> bool:
        return isinstance(other, Share)


class Flat(Space):
    def __init__(self, base: Space, width: int):
        self.base = base
        self.width = width
        super().__init__(
            base.graph,
            base.num_local * width,
            base.num_global * width,
            lambda: (base.places[:, None] * width + np.arange(width)).reshape(-1),
            num_counted=base.num_counted * width,
            draw_ids=lambda: (base.draw_ids[:, None] * width + np.arange(width)).reshape(-1),
            kind=f"flattened {base.kind}",
        )
        self.of_type = base.of_type

    def _matches(self, other: Space) -> bool:
        return isinstance(other, Flat) and self.width == other.width and self.base.same(other.base)


class Joined(Space):
    def __init__(self, parts: Sequence[Space]):
        self.parts: tuple[Space, ...] = tuple(parts)
        if any(part.num_counted != part.num_local for part in parts):
            raise InputError("rows cannot be joined with update on copies: take update='owners'")
        self.starts = starts = np.concatenate([[0], np.cumsum([part.num_global for part in parts])])
        super().__init__(
            parts[0].graph,
            sum(part.num_local for part in parts),
            int(starts[-1]),
            lambda: np.concatenate([part.places + start for part, start in zip(self.parts, starts, strict=False)]),
            kind="joined rows",
        )

    def part_at(self, ids: np.ndarray) -> tuple[Space, slice] | None:
        """The part whose places these ids are, in order, and where its local rows stand; None: they are no part's."""
        first = 0
        for part, start in zip(self.parts, self.starts, strict=False):
            if len(ids) == part.num_global and np.array_equal(ids, np.arange(start, start + len(ids))):
                return part, slice(first, first + part.num_local)
            first += part.num_local
        return None

    def _matches(self, other: Space) -> bool:
        if not isinstance(other, Joined) or len(self.parts) != len(other.parts):
            return False
        return all(one.same(two) for one, two in zip(self.parts, other.parts, strict=True))


def checked_ids(ids: np.ndarray, count: int) -> np.ndarray:
    """Ids from 0 to count - 1; negative ones count from the end. Raises: IndexError, as torch."""
    if ids.size and (ids.min() < -count or ids.max() >= count):
        bad = ids[(ids < -count) | (ids >= count)][0]
        raise IndexError(f"index {bad} is out of bounds for {count} rows of all ranks")
    return np.where(ids < 0, ids + count, ids).astype(np.int64)


def digest_of(space: Space, ids: np.ndarray) -> bytes:
    """What stands for ids that all ranks have. Collective: yes."""
    digest = hashlib.blake2b(np.ascontiguousarray(ids).tobytes(), digest_size=16).digest()
    if space.comm.size > 1:
        mine = np.frombuffer(digest, np.int64)
        low, high = (extreme_over_ranks(space.comm, mine, which) for which in ("min", "max"))
        if not np.array_equal(low, high):
            raise on_all_ranks(
                InputError(
                    "rows[ids] was given other ids on other ranks: give the same global ids on all, or rows of ids "
                    "(dg.ops.gather_rows_at takes each rank's own)"
                )
            )
    return digest
