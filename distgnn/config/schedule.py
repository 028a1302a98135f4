"""When rows travel and how wide: algorithm and schedule. Needs neither torch nor MPI.

Wires: in which format rows travel between ranks. What a format is, is said in this table alone.

    wire       bytes of a row of D columns      value
    float32    4 D (8 D for float64 rows)       itself
    bfloat16   2 D                              rounded to nearest even
    int8       D + 4                            code · scale,  scale = max |row| / 127, code in [-127, 127]
    int4       ceil(D / 2) + 4                  code · scale,  scale = max |row| / 7, code in [-7, 7]

Options, sizes of messages and estimates ask here; `kernels/wire/codecs.py` encodes and decodes.
"""

import re
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from distgnn.config.extras import asked_for, extended
from distgnn.config.option import check_values, documented, option, options_of
from distgnn.config.together import check_together
from distgnn.errors import InputError


class WireFormat(NamedTuple):
    """bits of a number on the wire, 0: of the rows' own dtype; levels: its codes go from -levels to levels, 0: a float.

    Rows of codes end with a float32 scale.
    """

    bits: int
    levels: int = 0


WIRES = {
    "float32": WireFormat(0),
    "bfloat16": WireFormat(16),
    "int8": WireFormat(8, levels=127),
    "int4": WireFormat(4, levels=7),
}


def row_bytes(width: int, wire: str, item: int = 4) -> int:
    """Bytes of one encoded row of `width` numbers, of `item` bytes each in memory; ValueError for an unknown wire."""
    if wire not in WIRES:
        raise ValueError(f"wire must be one of {', '.join(WIRES)}, got {wire!r}")
    found = WIRES[wire]
    return -(-width * (found.bits or 8 * item) // 8) + (4 if found.levels else 0)


_option = partial(option, panel="Algorithm and exchange")
_setting = partial(option, panel="")


@dataclass(frozen=True)
class Algorithm:
    """A schedule of exchanges: cd-0 (exact) or cd-r (`delay` r)."""

    name: str
    delay: int | None

    @property
    def exact(self) -> bool:
        """Is every exchange synchronous?"""
        return self.delay is None

    @classmethod
    def parse(cls, name: str) -> "Algorithm":
        """From "cd-0" or "cd-R". Raises: InputError for anything else."""
        match = re.fullmatch(r"cd-(\d{1,4})", name)
        if match is None:
            raise InputError(f"unknown algorithm {name!r}: choose cd-0 (exact) or cd-R (R epochs late)")
        delay = int(match[1])
        return cls(name, delay or None)


@documented
@dataclass(frozen=True)
@extended
class Schedule:
    """How rows of training steps travel."""

    warmup_epochs: int = _setting(
        1, "Exact, synchronous epochs at the start of cd-R; they fill all held rows.", least=1
    )
    wire: str = _option("float32", "Width of rows in training messages.", choices=tuple(WIRES))
    wire_backward: str | None = _setting(
        None, "Width of gradients in messages.", choices=tuple(WIRES), default_text="as --wire"
    )
    late_row_average: float = _setting(
        0.0, "Weight of the held row in a moving average with the row that arrives (cd-R; 0: it is replaced)."
    )

    @property
    def wires(self) -> tuple[str, str]:
        return self.wire, self.wire_backward or self.wire

    @property
    def by_extra(self) -> list[str]:
        """Extras that are asked to let rows travel in another way: one at most."""
        return asked_for("graph", self)

    @property
    def exact(self) -> bool:
        """Does cd-0 with this schedule compute what one process computes?"""
        return self.wires == ("float32", "float32")

    def caution(self, algorithm: Algorithm) -> str | None:
        """A line for a schedule that was measured to harm training (docs/LOG.md); None for all others."""
        if algorithm.delay == 1 and not self.late_row_average and not self.by_extra:
            line = "cd-1 without late-row-average makes the loss swing on some graphs: "
            return f"{line}add --set late_row_average=0.8, or take cd-5"
        return None

    def check(self, algorithm: Algorithm) -> None:
        """Raise InputError for a setting that no schedule can have, or that this algorithm would ignore."""
        check_values(self)
        if not 0 <= self.late_row_average < 1:
            weight = f"late_row_average is {self.late_row_average}"
            raise InputError(f"{weight}: expected a weight from 0 up to, but not including, 1")
        check_together(**options_of(self), algorithm=algorithm)
        if len(both := self.by_extra) > 1:
            raise InputError(
                f"extras {' and '.join(both)} exchange rows in different ways: leave the options of one out"
            )
