"""What the prediction of clusters attaches: two commands."""

from distgnn.config.extras import Extra

EXTRA = Extra(commands={"replay": "command:replay", "prices": "prices:prices"})
