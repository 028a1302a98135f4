"""Factors of vertices, by which an aggregation scales its sources and its targets."""

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, eq=False)
class RowScale:
    """One factor per vertex, wherever a rank meets the vertex: owned [O], source halos [S], target halos [T].

    Equal only to itself: graphs keep theirs, and kept aggregations are looked up by it.

    Example:
        >>> scale = graph.degree_scale("in", -1)
        >>> scale.owned.shape
        (60,)
    """

    owned: np.ndarray
    sources: np.ndarray
    targets: np.ndarray
    local: "RowScale | None" = None  # the factors where only a rank's own arcs take part (0c)
    whole: "RowScale | None" = None  # for a model that sees some of a part's owned rows: the factors of all of them

    def transposed(self) -> "RowScale":
        """For the transposed arcs: sources and targets change places."""
        whole = None if self.whole is None else self.whole.transposed()
        return RowScale(self.owned, self.targets, self.sources, self.local, whole)

    def of_rows(self, rows: Any) -> "RowScale":
        """The factors for a model that sees some of the owned rows, an index of numpy's."""
        return RowScale(self.owned[rows], self.sources, self.targets, whole=self)


Scales = tuple[RowScale | None, RowScale | None]  # of sources, of targets


def whole_scales(scales: Scales) -> Scales:
    """The factors of all owned rows behind the factors of some."""
    sources, targets = ((one and one.whole) or one for one in scales)
    return sources, targets
