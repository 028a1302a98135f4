"""RandomKeys: what keys the random masks and the rounding of a training step, whatever the number of ranks."""


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

    def next_call(self, site: int) -> int:
        """How often this dropout site drew in this step before.

        A layer that is run twice in a step draws two masks, and so does a loop that never moves the step.
        """
        call = self._calls_of_site.get(site, 0)
        self._calls_of_site[site] = call + 1
        return call

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
