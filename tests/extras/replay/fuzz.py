"""Hostile files of prices: tests/fuzz/fuzz_targets.py takes these, too."""

import json
from dataclasses import asdict
from pathlib import Path

from fuzzing import Target

KINDS, SLOW, FORGIVING = ("prices",), (), ()


def targets(root: Path) -> list[Target]:
    from distgnn.extras.replay.planning.epoch_estimate import EpochPrices, read_prices

    folder = root / "prices"
    folder.mkdir()
    text = json.dumps({"format_version": 1, **asdict(EpochPrices(1e-10, 4e-6, 9e-7))})
    (folder / "prices.json").write_text(text)
    return [Target("prices", folder, lambda folder: read_prices(folder / "prices.json"))]
