"""pytest plugin that says at the end what did not run: tests without their graphs, and tests that -m left out.

Tests that ask for the fixture `data_root` need the folder of real graphs; they carry the marker `real`.
"""

import os
from collections import Counter
from pathlib import Path

import pytest

TIERS = ("mpi", "slow", "real")
NO_GRAPHS = "no real graphs at "


def real_graphs() -> Path:
    """The folder of real graphs: DISTGNN_DATA, or ../shared/data beside the checkout."""
    named = os.environ.get("DISTGNN_DATA")
    return Path(named) if named else Path(__file__).resolve().parents[3] / "shared" / "data"


def pytest_configure(config):
    config.addinivalue_line("markers", "real: needs the folder of real graphs; set where a test asks for data_root")
    config.pluginmanager.register(LeftOut(), "left_out_counts")


@pytest.hookimpl(tryfirst=True)  # before -m selects
def pytest_collection_modifyitems(items):
    for item in items:
        if "data_root" in item.fixturenames:
            item.add_marker("real")


class LeftOut:
    """Counts in this process, or in the workers of pytest-xdist, and prints two lines."""

    def __init__(self):
        self.by_tier: Counter[str] = Counter()

    def pytest_deselected(self, items):
        for item in items:
            tiers = [tier for tier in TIERS if item.get_closest_marker(tier)]
            self.by_tier[tiers[0] if tiers else "other"] += 1

    def pytest_sessionfinish(self, session):
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput["left_out"] = dict(self.by_tier)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node):
        counts = (getattr(node, "workeroutput", None) or {}).get("left_out")
        self.by_tier = Counter(counts) if counts is not None else self.by_tier  # each worker collects all tests

    def pytest_terminal_summary(self, terminalreporter):
        skipped = terminalreporter.stats.get("skipped", [])
        number = sum(NO_GRAPHS in str(report.longrepr) for report in skipped)
        if number:
            terminalreporter.write_line(
                f"{number} tests skipped for lack of real graphs ({real_graphs()}): set DISTGNN_DATA to a folder; "
                "tests/README.md says which and where they come from"
            )
        if self.by_tier:
            counts = ", ".join(f"{count} {tier}" for tier, count in self.by_tier.most_common())
            terminalreporter.write_line(f"left out: {counts} (make test runs all; tests/README.md has the tiers)")
