"""A limit on memory beside what a small pass takes, with what would fit."""

import re

import pytest
from cut_graphs import random_graph

from distgnn.errors import InputError
from distgnn.partition import partition_graph, read_manifest
from distgnn.predicting.within_memory import check_limit

WIDTH = 8


def test_a_limit_on_memory(tmp_path):
    """Of what a small pass takes, and with what would fit; the smallest there is runs."""
    partition_graph(random_graph(4), 2, tmp_path / "parts", say=lambda line: None)
    manifest = read_manifest(tmp_path / "parts")

    def measure(tiny, small, offload, ranks):
        assert tiny.num_nodes < small.num_nodes and small.feats.shape[1] == WIDTH
        rows, halos = small.num_nodes // ranks, 3 * small.num_nodes * (ranks - 1)
        parts = [{"owned": rows, "source_halos": halos, "target_halos": halos}] * ranks
        return (rows + halos) * (10_000_000 if offload else 40_000_000), {"parts": parts}

    def line(limit, offload=False):
        return check_limit(limit, str(tmp_path / "parts"), manifest, offload, measure)

    assert re.match(r"memory: about \S+ GB a rank, beside mapped files, of 100 GB", line("100GB"))
    needs = r"rank \d needs about \S+ [GM]B beside mapped files, and memory is 1.5 GB: take"
    with pytest.raises(InputError, match=f"{needs} [3-9] ranks or offload"):
        line("1.5GB")
    with pytest.raises(InputError, match=f"{needs} [3-9] ranks$".replace("1.5 GB", "600 MB")):
        line("600MB", True)
    with pytest.raises(InputError, match="the program alone takes 345 MB"):
        line("300MB")
    assert re.match(r"memory: about \S+ GB a rank, beside mapped files; with offload \S+ [GM]B$", line(None))
