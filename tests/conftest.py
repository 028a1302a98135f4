"""Fixtures of all tests. Those for several ranks are in harness/mpi_marker.py."""

import gc
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from distgnn.datasets import GraphData, load_graph
from distgnn.system.launch import WAIT_ASLEEP

pytest_plugins = ["mpi_marker", "program"]

# Graphs that any clone can make: communities that a model learns, and hubs with self-loops and duplicates.
GENERATED = {
    "communities": "communities:nodes=2000,communities=20,avg_degree=6,feats=50,classes=5,noise=0.4,mixing=0.2,seed=1",
    "hubs": "rmat:scale=10,edge_factor=8,feats=8,classes=4,seed=1",
}

MOST_FILES = 300


def pytest_configure(config: pytest.Config) -> None:
    """Settings of this process, of workers and of ranks."""
    # Bytecode is kept, also that of tests as pytest rewrites them: each worker and each rank would make it anew, for
    # 8 s. No worker of pytest-xdist, nor a rank, imports a test before this.
    sys.dont_write_bytecode = False
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ.pop("PYTHONUNBUFFERED", None)  # it writes each word of a `print` by itself: lines of ranks would mix
    # Ranks wait asleep also where there is a core for each: other tests run beside them. On two cores with six programs
    # an all-reduce of two ranks took 16 ms when they wait by spinning, 0.8 ms so; of four ranks 69 and 1.5 ms.
    for variables in WAIT_ASLEEP.values():
        for name, value in variables.items():
            os.environ.setdefault(name, value)
    # Without `outdated`, ogb starts no thread that asks the network for newer versions: what such a thread warns of is
    # an error of whatever test runs then, and each test sets the filters of warnings back.
    sys.modules["outdated"] = None  # type: ignore[assignment]
    # No power is lost in these processes: a partition of two parts waited 27 times for the disk, 0.2 s in all. The
    # order of calls is what tests look at (harness/recorder.py).
    os.fsync = lambda descriptor: None


@pytest.hookimpl(tryfirst=True)  # before -m selects
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "data_root" in getattr(item, "fixturenames", ()):
            item.add_marker("real")


def pytest_collection_finish() -> None:
    """What was imported and collected stays: a million objects that no later collection of garbage looks at."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True, scope="module")
def few_open_files():
    """A part keeps some twenty files mapped until a collection finds its graph; 1,024 may be all."""
    yield
    if len(os.listdir("/proc/self/fd")) > MOST_FILES:
        gc.collect()


@pytest.fixture(scope="session")
def data_root() -> Path:
    """The folder of real graphs. Skips where there is none; asking for it gives a test the marker `real`."""
    root = Path(os.environ.get("DISTGNN_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data")
    if not root.is_dir():
        pytest.skip(f"no real graphs at {root}: set DISTGNN_DATA to a folder of them (tests/README.md)")
    return root


@pytest.fixture(scope="session")
def graph_named(request) -> Callable[[str], GraphData]:
    """`graph_named("communities")` is generated; `graph_named("cora")` is a real graph: mark such a case `real`."""

    def graph_named(name: str) -> GraphData:
        if name in GENERATED:
            return load_graph(GENERATED[name])
        return load_graph(name, request.getfixturevalue("data_root"))

    return graph_named
