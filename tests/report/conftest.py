"""A partition, and pages as a browser would see them."""

from pathlib import Path

import numpy as np
import pytest
from report_inputs import Page

from distgnn.datasets import GraphData
from distgnn.partition import partition_graph
from distgnn.report import make_page, read_inputs


@pytest.fixture(scope="session")
def partition(tmp_path_factory) -> Path:
    """A partition folder with three parts."""
    random = np.random.default_rng(0)
    data = GraphData.from_arrays(
        random.integers(0, 60, (200, 2)), 60, directed=False, name="small",
        feats=random.standard_normal((60, 6)).astype(np.float32), labels=random.integers(0, 3, 60),
        train=np.arange(30), valid=np.arange(30, 45), test=np.arange(45, 60),
    )  # fmt: skip
    folder = tmp_path_factory.mktemp("partition") / "parts"
    partition_graph(data, 3, folder, method="random")
    return folder


@pytest.fixture
def page():
    """`page(path, …)` is the page about these inputs."""
    return lambda *paths: Page(make_page(read_inputs(map(str, paths))))
