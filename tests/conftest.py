"""Fixtures of all tests. Those for several ranks are in harness/mpi_marker.py."""

import os
from pathlib import Path

import pytest

pytest_plugins = ["mpi_marker"]


@pytest.fixture(scope="session")
def data_root() -> Path:
    """The folder of real graphs: DISTGNN_DATA, or ../shared/data beside the checkout. Skips where there is none."""
    named = os.environ.get("DISTGNN_DATA")
    root = Path(named) if named else Path(__file__).resolve().parents[2] / "shared" / "data"
    if not root.is_dir():
        pytest.skip(f"no graphs at {root}: set DISTGNN_DATA to a folder of them")
    return root
