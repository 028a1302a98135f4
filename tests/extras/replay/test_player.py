"""Played epochs of few events beside what is computed by hand."""

import pytest

from distgnn.extras.replay import predict
from distgnn.extras.replay.network import Network
from distgnn.extras.replay.player import Player, Recording

LINK = Network(bandwidth=1e8, latency=1e-3, overhead=0.0)


def rank_of(other: int, before: float, behind: float, num_bytes: int = 10**8) -> list:
    """Compute, exchange rows with another rank, compute while they travel, wait."""
    start = [("receive", 0, other, num_bytes), ("send", 0, other, num_bytes)]
    return [("compute", "dense", before), *start, ("compute", "aggregate", behind), ("wait", [[0, 0], [0, 1]])]


def play(*ranks: list, network: Network = LINK, epochs: int = 1):
    recordings = [
        Recording(rank, 1, [events] * epochs, [[0] * len(ranks)] * epochs) for rank, events in enumerate(ranks)
    ]
    return Player(recordings, network).play()


def test_messages_travel_behind_computation():
    """The last rank is ready after 2 s; its message takes 1.001 s, of which 0.5 s are behind its computation."""
    (epoch,) = play(rank_of(1, 1.0, 0.5), rank_of(0, 2.0, 0.5))
    assert epoch.seconds == pytest.approx(3.001)
    assert [spent["wait"] for spent in epoch.spent] == pytest.approx([1.501, 0.501])
    (hidden,) = play(rank_of(1, 1.0, 1.5), rank_of(0, 2.0, 1.5))
    assert hidden.seconds == pytest.approx(3.5)


def test_small_messages_do_not_wait_for_their_receiver():
    """Rank 1 asks late: a small message is there by then; a large one begins only now."""
    late = [("compute", "dense", 1.0), ("receive", 0, 0, 8), ("wait", [[0, 0]])]
    (epoch,) = play([("send", 0, 1, 8)], late)
    assert epoch.seconds == pytest.approx(1.0)
    late[1] = ("receive", 0, 0, 10**8)
    (epoch,) = play([("send", 0, 1, 10**8), ("wait", [[0, 0]])], late)
    assert epoch.seconds == pytest.approx(2.001)


def test_bytes_take_time_from_a_rank_that_computes():
    network = Network(**{**LINK.as_dict(), "byte_seconds": 1e-9})
    (epoch,) = play(rank_of(1, 0.0, 3.0), rank_of(0, 0.0, 3.0), network=network)
    assert epoch.seconds == pytest.approx(3.2)  # 1e8 bytes out and as many in


def test_messages_of_two_ranks_stand_in_line():
    """A sum that is started behind rows of 1 s is complete after them, though its own 8 bytes take no time."""
    rows = [("receive", 0, 1, 10**8), ("send", 0, 1, 10**8), ("sum", 0, 8), ("wait", [[0, 2]])]
    back = [("receive", 0, 0, 10**8), ("send", 0, 0, 10**8), ("sum", 0, 8), ("wait", [[0, 2]])]
    (epoch,) = play(rows, back)
    assert epoch.seconds == pytest.approx(1.001, abs=0.01)


def test_buffers_hold_so_much_between_two_calls():
    """Of 1e8 bytes 2.5e7 move while both compute for 1 s, and twice as many where they call the library once."""
    network = Network(**{**LINK.as_dict(), "buffer_bytes": 2.5e7})
    (epoch,) = play(rank_of(1, 0.0, 1.0), rank_of(0, 0.0, 1.0), network=network)
    assert epoch.seconds == pytest.approx(1.75)
    called = [[*rank_of(1 - rank, 0.0, 0.5)[:-1], ("progress",), *rank_of(0, 0.0, 0.5)[3:]] for rank in (0, 1)]
    (epoch,) = play(*called, network=network)
    assert epoch.seconds == pytest.approx(1.5)
    (epoch,) = play(rank_of(1, 0.0, 0.1), rank_of(0, 0.0, 0.1), network=network)  # who waits takes all that comes
    assert epoch.seconds == pytest.approx(1.001)


def test_a_sum_goes_on_where_its_rank_calls_the_library():
    """Rank 0 computes for 1 s after it joined: the second step of its sum is taken then, or at its call after 0.5 s."""
    wait = [("wait", [[0, 0]])]
    (late,) = play([("sum", 0, 2 * 10**7), ("compute", "dense", 1.0), *wait], [("sum", 0, 2 * 10**7), *wait])
    half = ("compute", "dense", 0.5)
    (early,) = play([("sum", 0, 2 * 10**7), half, ("progress",), half, *wait], [("sum", 0, 2 * 10**7), *wait])
    ends = [[sum(spent.values()) for spent in epoch.spent] for epoch in (late, early)]
    assert ends[0] == pytest.approx([1.0, 1.101], abs=2e-3) and ends[1] == pytest.approx([1.0, 0.601], abs=2e-3)


def test_sums_begin_with_the_last_rank():
    early = [("sum", 0, 10**8), ("compute", "dense", 0.2), ("wait", [[0, 0]])]
    (epoch,) = play(early, [("compute", "dense", 0.5), *early])
    assert epoch.seconds == pytest.approx(0.5 + 2 * (1e-3 + 0.5))


def test_rows_of_earlier_epochs_are_waited_for_later():
    """Two bins: what was sent in the epoch before last is waited for; 1.001 s pass behind epochs of 0.6 s."""
    events = [("wait", [[2, 0], [2, 1]]), *rank_of(1, 0.0, 0.6)[1:4]]
    other = [("wait", [[2, 0], [2, 1]]), *rank_of(0, 0.0, 0.6)[1:4]]
    for epoch in play(events, other, epochs=4)[2:]:
        # The link carries 1 s of bytes an epoch: that is what the epoch takes, not 0.6 s.
        assert epoch.seconds == pytest.approx(1.0, abs=0.41)
    narrow = [[("wait", [[2, 0], [2, 1]]), *rank_of(1 - rank, 0.0, 0.6, 10**7)[1:4]] for rank in (0, 1)]
    for epoch in play(*narrow, epochs=4)[2:]:
        assert epoch.seconds == pytest.approx(0.6)


def test_a_prediction_leaves_out_the_first_cycle_and_has_an_interval():
    """Of rank 1 epochs of 9, 1 and 3 s of computation before it sends 1 s of rows: 2 and 4 s count."""
    epochs = [(rank_of(1, 0.0, 0.5), rank_of(0, before, 0.5)) for before in (9.0, 1.0, 3.0)]
    of_ranks = zip(*epochs, strict=True)
    recordings = [Recording(rank, 1, list(of), [[7, 7]] * 3, 100) for rank, of in enumerate(of_ranks)]
    found = predict.epoch(recordings, LINK)
    assert found.seconds == pytest.approx(3.001) and found.sent_bytes == 28 and found.messages == 2
    assert found.low == pytest.approx(2.001 / (1 + predict.ERROR))
    assert found.high == pytest.approx(4.001 * (1 + predict.ERROR))
    assert found.of_rank[1]["compute_seconds"] == pytest.approx(2.5) and found.pair_bytes == [[7, 7], [7, 7]]
    assert found.efficiency == pytest.approx((0.5 + 2.5) / 2 / 3.001)
