"""What the tests of the default cut share."""

import pytest


@pytest.fixture
def as_large(monkeypatch):
    """Call it: from then on every graph is cut as one that is large."""

    def patch() -> None:
        for module in ("cmr.method", "refinement.vertex_moves"):
            monkeypatch.setattr(f"distgnn.partition.{module}.SMALL", 0)

    return patch
