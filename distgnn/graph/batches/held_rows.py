"""Rows as they last were, wherever a rank meets a vertex: what a batch reads of vertices outside it.

Legend: O owned rows, H halo rows of one direction (source halos forward, target halos backward), D width.
"""

from typing import Any, NamedTuple

import numpy as np


class Table(NamedTuple):
    """owned [O, D], halos [H, D]."""

    owned: np.ndarray
    halos: np.ndarray


class HeldRows:
    """One table for each exchange of a step, in one direction; zeros until a batch has written to it.

    Args: num_owned, num_halos: O and H; kept: False where nothing outside a batch is read: one table then serves all
        exchanges.
    """

    def __init__(self, num_owned: int, num_halos: int, kept: bool = True):
        self._sizes, self._kept = (num_owned, num_halos), kept
        self._tables: dict[int | tuple[Any, ...], Table] = {}

    def at(self, site: int, like: np.ndarray) -> Table:
        """The table of exchange `site`, of rows like `like` [*, D]."""
        kind = like.shape[1], like.dtype
        key = site if self._kept else kind
        table = self._tables.get(key)
        if table is None or (table.owned.shape[1], table.owned.dtype) != kind:
            table = self._tables[key] = Table(*(np.zeros((rows, kind[0]), kind[1]) for rows in self._sizes))
        return table

    def num_bytes(self) -> int:
        """Memory of all tables."""
        return sum(array.nbytes for table in self._tables.values() for array in table)

    def state_dict(self) -> dict[str, np.ndarray]:
        """The rows, for a checkpoint: empty where none are kept."""
        named = ((site, part, array) for site, table in self._tables.items() for part, array in table._asdict().items())
        return {f"{site}.{part}": array for site, part, array in named if self._kept}

    def load_state_dict(self, state: dict[str, np.ndarray]) -> None:
        """Take up what `state_dict` gave. Raises: ValueError where it is of another part."""
        self._tables = {}
        for site in sorted({int(name.partition(".")[0]) for name in state}):
            table = Table(*(np.array(state[f"{site}.{part}"]) for part in Table._fields))
            if tuple(map(len, table)) != self._sizes or table.owned.shape[1:] != table.halos.shape[1:]:
                raise ValueError(f"exchange {site} has {len(table.owned)} and {len(table.halos)} rows")
            self._tables[site] = table
