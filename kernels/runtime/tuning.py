"""What was measured for kernels on this machine: `Tuning`, a value that the process holds.

Choices of the process change no bit: how far ahead a row is asked for, how many vectors of sums a pass has, how many
rows a product takes at a time, and which results are written past the caches. Choices of a job change the rounding:
each graph holds them, alike on all ranks. `kernels/graph/tuner.py` measures; the defaults are what was best over the
machines of docs/internals/kernels.md.
"""

import contextlib
import functools
from collections.abc import Iterator
from typing import NamedTuple

from distgnn.kernels.runtime.tiles import registers

AHEAD_SIZES = {256: 362, 512: 1 << 62}  # bytes of a row that was measured: for rows below this
BLOCKED_BYTES = 512  # of a row, at the least: narrower ones were slower by blocks
MOST_AHEAD, LEAST_AHEAD = 128, 4  # arcs
NEVER = 1 << 62


class Tuning(NamedTuple):
    """How kernels run: whole numbers, 0 or 1 for no or yes.

    ahead_*: bytes of rows under way, by bytes of a row; vectors: of sums in a pass; product_rows: taken together;
    past_caches: bytes of a result from which on it is written so. Of a job: blocked: sums of wide rows go by blocks of
    sources (aggregate.py); own_products: float32 matrices are multiplied by `product`, not by torch;
    wide_products: bfloat16 rows are widened block by block to be multiplied, not by torch as they are.
    """

    ahead_256: int = 8 << 10
    ahead_512: int = 8 << 10
    vectors: int = 16
    product_rows: int = 96
    past_caches: int = 64 << 20
    blocked: int = 0
    own_products: int = 1
    wide_products: int = 1

    def goes_by_blocks(self, row_bytes: int) -> bool:
        """Whether sums of rows of about `row_bytes` go by blocks where a graph is dense enough (aggregate.py)."""
        return self.blocked == 1 and row_bytes >= BLOCKED_BYTES

    def for_job(self, first: "Tuning") -> "Tuning":
        """This machine's choices, and those of the job, which the first rank's machine makes."""
        return self._replace(**{name: getattr(first, name) for name in OF_JOB})


OF_JOB = ("blocked", "own_products", "wide_products")


@functools.cache
def _held() -> list[Tuning]:
    return [Tuning()]


def held_tuning() -> Tuning:
    """This process's."""
    return _held()[0]


def hold_tuning(tuning: Tuning) -> None:
    """Have this process's kernels run so from now on: their bits stay."""
    _held()[0] = tuning


@contextlib.contextmanager
def holding(tuning: Tuning) -> Iterator[None]:
    """The same for some time."""
    before = held_tuning()
    hold_tuning(tuning)
    try:
        yield
    finally:
        hold_tuning(before)


def arcs_ahead(row_bytes: int) -> int:
    """How many arcs before its sum a row of `row_bytes` is asked for."""
    size = next(size for size, below in AHEAD_SIZES.items() if row_bytes < below)
    bytes_ahead = getattr(held_tuning(), f"ahead_{size}")
    return min(MOST_AHEAD, max(LEAST_AHEAD, bytes_ahead // max(1, row_bytes)))


def sum_vectors(factors: bool) -> int:
    """How many vectors of sums a pass holds. Args: factors: one for each arc, which need registers, too."""
    # Of 16 registers all may hold sums where there is no factor: x86 adds from memory.
    return min(held_tuning().vectors, registers()[1] if factors else 16)
