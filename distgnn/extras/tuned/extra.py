"""What recipe tuned attaches: a recipe that trains several times and chooses."""

from distgnn.config.extras import Extra

EXTRA = Extra(
    recipes={
        "tuned": (
            "race:race",
            "published settings are raced on validation over the same cut, and the best is trained (epochs: 1000).",
        )
    },
)
