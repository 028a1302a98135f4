"""Hostile files of prices: tests/fuzz/fuzz_targets.py takes these, too."""

import json
from pathlib import Path

from fuzzing import Target

KINDS, SLOW, FORGIVING = ("prices",), (), ()


def targets(root: Path) -> list[Target]:
    from distgnn.extras.replay.network import parse_network

    folder = root / "prices"
    folder.mkdir()
    (folder / "prices.json").write_text(json.dumps({"network": {"bandwidth": 1e9, "latency": 2e-5}}))
    return [Target("prices", folder, lambda folder: parse_network(str(folder / "prices.json")))]
