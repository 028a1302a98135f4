"""How much curvature is trusted: lambda, raised by a step after which the loss is higher, lowered slowly otherwise."""

import math

RISE = 0.1  # a loss is higher where it is above the smallest of the last steps by this share of it
NOISE = 0.01  # and by this share of the first loss: near its end a loss moves by masks alone
MEMORY = 5  # steps whose smallest loss is compared with
GROWTH, DECAY = 2.0, 0.95
MOST = 1e4  # times the lambda of the settings


class Damping:
    """Lambda of the next step.

    Args: start: lambda of the settings, never gone below.
    """

    value: float
    first: float
    losses: list[float]

    def __init__(self, start: float):
        self.start = self.value = start
        self.first = math.inf
        self.losses = [math.inf] * MEMORY

    def follow(self, loss: float) -> bool:
        """After a step that began with this loss (of the whole graph): was lambda raised?"""
        lowest = min(self.losses)
        if math.isinf(self.first):
            self.first = loss
        rose = loss > lowest + RISE * lowest + NOISE * self.first
        self.losses = [*self.losses[1:], loss]
        if rose:
            self.value = min(self.value * GROWTH, self.start * MOST)
            self.losses = [math.inf] * (MEMORY - 1) + [loss]  # one rise counts once
        else:
            self.value = max(self.value * DECAY, self.start)
        return rose

    def numbers(self) -> list[float]:
        """What a checkpoint keeps."""
        return [self.value, self.first, *self.losses]

    def load(self, numbers: list[float]) -> None:
        """Go on from what `numbers` gave."""
        self.value, self.first, *self.losses = numbers
