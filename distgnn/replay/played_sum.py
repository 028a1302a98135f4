"""A sum over ranks while it is played: each rank goes through the steps of the library's algorithm by itself.

Legend: P ranks, K steps.

    step k of rank r    send to rank r + distance(k), receive from rank r - distance(k), both modulo P
    the next step       once that message is there and the rank calls the library, or waits in it
"""

from collections.abc import Iterator
from typing import Any


class PlayedSum:
    """Where each rank is.

    Args:
        steps: (distance, bytes) of each step, as `network.sum_steps` gives them.
        num_ranks: P.
    """

    steps: list[tuple[int, float]]
    num_ranks: int

    def __init__(self, steps: list[tuple[int, float]], num_ranks: int):
        self.steps, self.num_ranks = steps, num_ranks
        self.joined: list[Any] = []  # what ranks wait for, in the order in which they joined
        self.of_rank: dict[int, Any] = {}
        self._step: dict[int, int] = {}  # of each rank that has joined
        self._arrived: set[tuple[int, int]] = set()  # (rank, step)

    def join(self, rank: int, started: Any) -> None:
        """A rank takes part from now on; `started` is what it waits for."""
        self.joined.append(started)
        self.of_rank[rank] = started
        self._step[rank] = -1

    def arrived(self, rank: int, step: int) -> None:
        """The message of a step has reached a rank."""
        self._arrived.add((rank, step))

    def sends(self, rank: int) -> Iterator[tuple[int, int, float]]:
        """A rank is in the library: (step, to whom, bytes) of each message that it sends now."""
        if rank not in self._step:
            return
        while self._step[rank] < 0 or (rank, self._step[rank]) in self._arrived:
            self._step[rank] += 1
            if self._step[rank] < len(self.steps):
                distance, num_bytes = self.steps[self._step[rank]]
                yield self._step[rank], (rank + distance) % self.num_ranks, num_bytes

    def is_done(self, rank: int) -> bool:
        """Does a rank have the sum?"""
        return self._step.get(rank, -1) == len(self.steps)
