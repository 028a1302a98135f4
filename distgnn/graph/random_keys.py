"""RandomKeys: what keys the random masks and the rounding of a training step, whatever the number of ranks.

`torch.utils.checkpoint` runs a layer a second time, after it set torch's generator back. So each draw here takes one
number of that generator, as torch's dropout would: a number that was met before in this step is the draw made again.
"""

from typing import Any

import torch

from distgnn.errors import RunError, on_all_ranks

REPEATED = (
    "torch.utils.checkpoint repeats exchanges of rows, and those of a delayed or narrow schedule cannot be repeated: "
    "train with cd-0 and float32 on the wire, or without checkpoint"
)
MOST_MET = 1 << 14  # draws that are remembered, of a loop that never moves the step


class RandomKeys:
    """Counts what is drawn in one training step: a mask is keyed by (seed, step, site and call, global id, column).

    Nothing here is random, and nothing belongs to a rank: all ranks run the same layers in the same order, so they
    count alike, and a vertex has the same mask on whatever rank it is.

    Attributes:
        seed: of the run.
    """

    def __init__(self, seed: int):
        self.seed = seed
        self.step = 0

    @property
    def step(self) -> int:
        """The training step. Setting it, also to the same number, counts sites and calls from 0 again."""
        return self._step

    @step.setter
    def step(self, step: int) -> None:
        self._step = step
        self._num_sites = 0
        self._calls_of_site: dict[int, int] = {}
        self._met: dict[tuple[int | None, int], int] = {}  # (dropout site or None, number of torch's) -> draw

    def next_call(self, site: int) -> int:
        """How often this dropout site drew in this step before.

        A layer that is run twice in a step draws two masks, and so does a loop that never moves the step.
        """
        call = self._calls_of_site.get(site, 0)
        before = self._meet(site, call)
        if before is not None:
            return before
        self._calls_of_site[site] = call + 1
        return call

    def _meet(self, site: int | None, draw: int) -> int | None:
        """The draw that this one repeats; None: it is new, and is remembered."""
        key = site, int(torch.randint(1 << 62, (), device="cpu"))
        if key in self._met:
            return self._met[key]
        if len(self._met) == MOST_MET:
            del self._met[next(iter(self._met))]
        self._met[key] = draw
        return None

    def check_exchange(self) -> None:
        """Raise RunError for an exchange of a training step that is made again. Also called where nothing is trained:
        a first run without gradients may be repeated with them."""
        if self._meet(None, self._num_sites) is not None and torch.is_grad_enabled():
            raise on_all_ranks(RunError(REPEATED))

    def next_site(self) -> int:
        """The number of the next exchange site in this step."""
        self._num_sites += 1
        return self._num_sites - 1

    def draws(self) -> tuple[int, dict[int, int]]:
        """How far this step's exchanges and masks have been numbered; `set_draws` goes back to it."""
        return self._num_sites, dict(self._calls_of_site)

    def set_draws(self, draws: tuple[int, dict[int, int]]) -> None:
        """Number on from what `draws` gave: a layer that is computed again draws the masks it drew."""
        self._num_sites, self._calls_of_site = draws[0], dict(draws[1])


def _of_keys(name: str, doc: str) -> Any:
    def put(graph: Any, value: int) -> None:
        setattr(graph.random_keys, name, value)

    return property(lambda graph: getattr(graph.random_keys, name), put, doc=doc)


class DrawsByKeys:
    """What a graph shows of its `random_keys`: a base class."""

    random_keys: RandomKeys
    seed: int = _of_keys("seed", "Of random masks and rounding.")
    step: int = _of_keys("step", "The training step, part of the key of every random mask. The trainer moves it.")
