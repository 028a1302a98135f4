"""A plan: ranks as text, estimates that move the right way, what is advised and what is refused."""

from dataclasses import replace

import pytest

from distgnn.config import RunConfig, Schedule, Settings, TrainConfig
from distgnn.config.model import ModelConfig
from distgnn.config.wires import row_bytes
from distgnn.errors import InputError, RunError
from distgnn.extras.replay.network import parse_network
from distgnn.extras.replay.planning.choose import all_estimates, choose, commands, parse_ranks
from distgnn.extras.replay.planning.epoch_estimate import (
    OWNED_IN_MEMORY,
    ROWS_IN_MEMORY,
    Choice,
    Rank,
    assumed_prices,
    estimate,
)
from distgnn.extras.replay.planning.graph_sizes import PUBLISHED, GraphSizes
from distgnn.train.run.estimate import LATE_OUTPUT_ROWS, OUTPUT_ROWS

SETTINGS = Settings(TrainConfig(), ModelConfig("sage", 256, 3), RunConfig(), Schedule()).checked()
RANK = Rank(assumed_prices(28), 28)
PAPERS = PUBLISHED["ogbn-papers100M"]


def test_ranks_as_text():
    assert parse_ranks("1,2,…,16") == [1, 2, 4, 8, 16]
    assert parse_ranks("4,8,12,...,20") == [4, 8, 12, 16, 20]
    assert parse_ranks("8,2,2") == [2, 8]


@pytest.mark.parametrize("text", ["", "two", "0", "1,…", "1,…,8", "4,2,…,16", "1,2,…,x"])
def test_ranks_that_are_none(text):
    with pytest.raises(InputError, match="ranks"):
        parse_ranks(text)


def test_rows_between_known_cuts():
    sizes = GraphSizes("g", 1000, 10000, 8, 4, {4: 1.0, 16: 3.0})
    assert [sizes.exchange_rows(parts) for parts in (1, 2, 4, 8, 16, 64)] == pytest.approx(
        [0, 1000 * 0.5**1.5, 1000, 2000, 3000, 5000]
    )


def test_bytes_are_rows_times_widths():
    """Layers 2 and 3 exchange 256 and 172 numbers of 4 bytes, forward and backward; a fifth of them under cd-5."""
    network = parse_network("25gbit")
    rows = PAPERS.exchange_rows(64)
    one = estimate(PAPERS, Choice(64), SETTINGS, RANK, network)
    assert one.sent_bytes == pytest.approx(2 * rows * (256 + 172) * 4)
    late = estimate(PAPERS, Choice(64, "cd-5", "bfloat16"), SETTINGS, RANK, network)
    assert late.sent_bytes == pytest.approx(one.sent_bytes / 10)
    narrow = estimate(PAPERS, Choice(64, wire="int4"), SETTINGS, RANK, network)
    assert narrow.sent_bytes == pytest.approx(2 * rows * sum(row_bytes(width, "int4") for width in (256, 172)))
    assert one.least_seconds <= one.epoch_seconds <= one.most_seconds
    faster = estimate(PAPERS, Choice(64), SETTINGS, RANK, parse_network("100gbit"))
    assert faster.epoch_seconds < one.epoch_seconds


def test_late_rows_take_the_width_of_the_wire():
    """Held rows are whole after the warm-up, until a fifth has arrived; messages are as narrow as what travels."""
    network = parse_network("25gbit")
    half, narrow, exact = (
        estimate(PAPERS, Choice(64, *choice), SETTINGS, RANK, network).memory_bytes
        for choice in (("cd-5", "bfloat16"), ("cd-5", "int8"), ("cd-0", "float32"))
    )
    int8 = (256 + 172 + 4) / 4  # numbers of four bytes
    of_rank = ROWS_IN_MEMORY * PAPERS.exchange_rows(64) / 64
    assert half - narrow == pytest.approx(4 * 2 * 1.4 * of_rank * ((256 + 172) / 2 - int8), rel=1e-5)
    outputs = 4 * OWNED_IN_MEMORY * PAPERS.num_nodes / 64 * 172 * (OUTPUT_ROWS - LATE_OUTPUT_ROWS)
    assert narrow > exact - outputs + 4 * 2 * of_rank * (256 + 172) * 4 / 5  # held rows of both directions


def test_of_published_graphs_rows_are_those_that_cmr_leaves():
    """papers100M in float32 on 8 ranks of 128 GB, in bfloat16 on 6, with narrow late rows on 10: its halo copies are
    few, as those of ogbn-arxiv."""
    network = parse_network("100gbit")
    for dtype, ranks in (("float32", 8), ("bfloat16", 6)):
        settings = replace(SETTINGS, run=RunConfig(dtype=dtype)).checked()
        one = choose(all_estimates(PAPERS, [4, 6, 8, 16], settings, RANK, network), 128 * 10**9, None)
        assert (one.choice.ranks, one.choice.algorithm) == (ranks, "cd-0")
    assert estimate(PAPERS, Choice(10, "cd-5", "int8"), SETTINGS, RANK, network).memory_bytes <= 128 * 10**9


def test_advice_fits_and_reaches_the_target():
    network = parse_network("100gbit")
    found = all_estimates(PAPERS, parse_ranks("1,2,…,128"), SETTINGS, RANK, network)
    one = choose(found, 128 * 10**9, None)
    assert one.memory_bytes <= 128 * 10**9 and one.choice.algorithm == "cd-0"
    quick = choose(found, None, 2 * one.epoch_seconds)
    assert quick.epoch_seconds <= 2 * one.epoch_seconds and quick.choice.ranks <= one.choice.ranks
    cut, train = commands(one, "ogbn-papers100M", SETTINGS, network, False)
    assert cut.startswith("distgnn partition ogbn-papers100M --parts") and "--algorithm cd-0" in train


@pytest.mark.parametrize(("more", "words"), [({"norm": "none"}, "--norm none"), ({"remat": True}, "--remat")])
def test_norm_and_remat_are_known(more, words):
    """Of a model whose layers keep more than one row of each vertex."""
    plain, other = (
        Settings(TrainConfig(), ModelConfig("gat", 256, 8, **options), RunConfig(), Schedule()).checked()
        for options in ({}, more)
    )
    network = parse_network("100gbit")
    (before, *_), found = (all_estimates(PAPERS, [2], one, RANK, network) for one in (plain, other))
    assert found[0].memory_bytes < 0.9 * before.memory_bytes
    assert words in commands(found[0], "ogbn-papers100M", other, network, False)[1]
    assert all(one.choice.algorithm == "cd-0" for one in found) or not other.model.remat


def test_what_nothing_does_is_refused():
    found = all_estimates(PAPERS, [1, 2], SETTINGS, RANK, parse_network("10gbit"))
    with pytest.raises(RunError, match="nothing fits"):
        choose(found, 10**9, None)
    with pytest.raises(RunError, match="no choice reaches"):
        choose(found, None, 1e-6)
