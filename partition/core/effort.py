"""How much a cut is improved: `--effort`, as numbers.

Each round of flows and V-cycles brings less than the one before it. A higher effort goes the same way, only further: it
has fewer copies, if not always of one-way graphs, of several groups, or where the last evening-out takes some back.
What the efforts give and take: docs/internals/cmr.md.

Source: ours.
"""

from __future__ import annotations

from typing import NamedTuple


class Effort(NamedTuple):
    """cycles: rounds of flows, with a V-cycle between two; least_saved: of the copies beyond the first, flows that save
    less are the last; turns: on graphs that are too large for flows, how often clusters of all levels move, or, where
    there are none, all edges of a vertex, and single edges after them."""

    cycles: int
    least_saved: float
    turns: int


EFFORTS = {
    "fast": Effort(cycles=1, least_saved=0.005, turns=0),
    "normal": Effort(cycles=3, least_saved=0.001, turns=1),
    "best": Effort(cycles=24, least_saved=0.0005, turns=4),
}
NORMAL = EFFORTS["normal"]
