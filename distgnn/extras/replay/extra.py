"""What the prediction of clusters attaches: two commands, and what a study of several networks asks for."""

from distgnn.config.extras import Extra

EXTRA = Extra(
    commands={"replay": "command:replay", "prices": "prices:prices"},
    hooks={
        "network": "network:parse_network",
        "record": "record:record",
        "predict": "predict:epoch",
        "emulate": "emulate:emulated",
    },
)
