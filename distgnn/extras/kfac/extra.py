"""What K-FAC attaches: an optimiser with its settings, and rows of the recipe."""

from dataclasses import dataclass
from functools import partial

from distgnn.config.extras import Extra, Rule
from distgnn.config.option import option

_setting = partial(option, panel="")


@dataclass
class KfacOptions:
    """When factors are made, and how far they are trusted."""

    kfac_every: int = _setting(10, "Steps between new factors; the first ones come closer together.", least=1)
    kfac_damping: float = _setting(0.003, "Least damping of the factors; a rising loss raises it.", least=1e-12)


EXTRA = Extra(
    options={"TrainConfig": KfacOptions},
    choices={"optimizer": {"kfac": "natural gradient with Kronecker factors; moves matrices with three times --lr"}},
    rates={"kfac": 0.01},
    rules=(
        # Every copy of a vertex has a share of its gradient: sums of their squares are another matrix on more ranks.
        Rule(
            "optimizer kfac is for update on owners: leave copy_updates out, or choose another optimizer",
            lambda optimizer, copy_updates: optimizer == "kfac" and copy_updates,
        ),
        Rule(  # whose product is part of the convolution: it has no factors of its own
            "--optimizer kfac has no factors for residuals: choose --block plain, or another optimizer",
            lambda block, optimizer: block != "plain" and optimizer == "kfac",
        ),
    ),
    hooks={"optimizer": "optimizer:KFAC", "recipe": "recipe:FAST"},
)
