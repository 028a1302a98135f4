"""What the prediction of clusters attaches: three commands."""

from distgnn.config.extras import Extra

EXTRA = Extra(commands={"plan": "planning.command:plan", "replay": "command:replay", "prices": "prices:prices"})
