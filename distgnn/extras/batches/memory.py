"""Memory of held rows, forward and backward: 2 · (L − 1) · (O + H) · W numbers."""

from typing import Any


def held_numbers(part: dict[str, Any], settings: dict[str, Any]) -> int:
    """Numbers that a rank holds. Args: part: of partition.json; settings: sections of config.toml."""
    model = settings["model"]
    if not settings.get("train", {}).get("cluster_batches"):
        return 0
    return 2 * max(model["num_layers"] - 1, 1) * part["rows"] * model["hidden_feats"]
