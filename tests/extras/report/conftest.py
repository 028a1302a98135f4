"""A partition, and pages as a browser would see them."""

import sys
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from distgnn.datasets import GraphData
from distgnn.extras.report import page as drawing
from distgnn.extras.report.command import make_page
from distgnn.extras.report.read import read_inputs
from distgnn.partition import partition_graph

sys.path.append(str(Path(__file__).parent))
from report_inputs import Page


@pytest.fixture(scope="session")
def partition(tmp_path_factory) -> Path:
    """A partition folder with three parts."""
    random = np.random.default_rng(0)
    data = GraphData.from_arrays(
        random.integers(0, 60, (200, 2)), 60, directed=False, name="small",
        feats=random.standard_normal((60, 8)).astype(np.float32), labels=random.integers(0, 4, 60),
        train=np.arange(30), valid=np.arange(30, 45), test=np.arange(45, 60),
    )  # fmt: skip
    folder = tmp_path_factory.mktemp("partition") / "parts"
    partition_graph(data, 3, folder, method="random")
    return folder


@pytest.fixture
def page(monkeypatch):
    """`page(path, …)` is the page about these inputs; SVG is made of its drawings only if `whole`."""
    as_svg, drawn = drawing.svg, []

    def page(*paths, whole: bool = False) -> Page:
        def keep(draw, width=0.0, height=0.0) -> str:
            drawn.append(Figure().subplots())
            draw(drawn[-1])
            return as_svg(draw, width or drawing.WIDTH, height or 280) if whole else "<svg></svg>"

        drawn.clear()
        monkeypatch.setattr(drawing, "svg", keep)
        return Page(make_page(read_inputs(map(str, paths))), list(drawn))

    return page
