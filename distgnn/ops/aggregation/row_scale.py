"""Factors of vertices, by which an aggregation scales its sources and its targets."""

from dataclasses import dataclass, field
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

    def transposed(self) -> "RowScale":
        """For the transposed arcs: sources and targets change places."""
        return RowScale(self.owned, self.targets, self.sources, self.local)


@dataclass(frozen=True, eq=False)
class SubsetScale(RowScale):
    """Factors for a model that sees some of a part's owned rows, in `owned`; `whole`: those of all of them."""

    whole: RowScale = field(kw_only=True)

    @classmethod
    def of(cls, whole: RowScale, rows: Any) -> "SubsetScale":
        """The factors of some owned rows, an index of numpy's."""
        return cls(whole.owned[rows], whole.sources, whole.targets, whole=whole)

    def transposed(self) -> "SubsetScale":
        return SubsetScale(self.owned, self.targets, self.sources, whole=self.whole.transposed())


def whole_scale(scale: RowScale | None) -> RowScale | None:
    """The factors of all owned rows behind those of some."""
    return scale.whole if isinstance(scale, SubsetScale) else scale
