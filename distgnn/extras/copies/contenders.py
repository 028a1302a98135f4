"""Whom `distgnn bench` can compare besides: options by name, and by "/word" behind an algorithm."""

CONTENDERS = {
    "0c": {"copy_updates": "0c"},
    "paper": {"copy_updates": "held", "cache_first": False, "transform_first": False},  # its whole form
    "/copies": {"copy_updates": "held"},
    "/paper-rule": {"copy_updates": "paper"},
}
