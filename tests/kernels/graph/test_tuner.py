"""The tuner chooses by times: recorded ones, simulated ones, and those of a noisy machine; no choice changes a bit."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from distgnn.kernels import Tuning, product, spmm
from distgnn.kernels.graph import tuner
from distgnn.kernels.runtime.tuning import NEVER, OF_JOB, arcs_ahead, holding, sum_vectors

from ..graphs import awkward, rows_of

BENCH = Path(__file__).parents[2] / "bench" / "kernels"
sys.path.insert(0, str(BENCH))
import replay_tuning  # noqa: E402

# Seconds of processors with one property each, by question; the default's is 1 where no other stands there.
XEON = {"ahead_256": {4096: 0.7, 8192: 0.85, 16384: 1.0}, "wide_products": {0: 1.4, 1: 1.0}, "product_rows": {48: 0.97}}
ZEN = {"ahead_256": {4096: 1.3, 16384: 0.87}, "vectors": {8: 0.9}, "past_caches": {NEVER: 1.1}, "blocked": {1: 0.6}}
SIMULATED = {
    "little level 1": (XEON, {"ahead_256": 4096}),
    "much level 1": (ZEN, {"ahead_256": 16384, "vectors": 8, "blocked": 1}),
    "blocks that hardly pay": ({"blocked": {1: 0.9}}, {}),
    "quick bfloat16": ({"wide_products": {0: 0.5}, "own_products": {0: 0.8}}, {"wide_products": 0, "own_products": 0}),
}


def questions():
    """As on a machine, without memory; those of products are `distgnn.graph`'s."""
    ours = [question._replace(make=lambda: None) for question in tuner.kernel_questions()]
    return [*ours, *(tuner.Question(name, (0, 1), lambda: None) for name in OF_JOB if name != "blocked")]


def table(seconds, start=tuner.DEFAULTS):
    return lambda question, _: {
        value: seconds.get(question.field, {}).get(value, 1.0 if value == getattr(start, question.field) else 1.2)
        for value in question.values
    }


@pytest.mark.parametrize("name", SIMULATED)
def test_simulated_processors(name):
    seconds, expected = SIMULATED[name]
    assert tuner.tune(questions(), table(seconds)) == Tuning(**expected)


def test_a_wrong_tuning_is_mended():
    """16 KiB ahead, where 4 are quicker by a third."""
    wrong = Tuning(ahead_256=16 << 10)
    assert tuner.tune(questions(), table(XEON, wrong), wrong).ahead_256 == 4096


def test_another_choice_than_the_default_must_win_twice():
    rounds = iter([{0: 1.0, 1: 0.5}, {0: 1.0, 1: 0.99}, {0: 1.0, 1: 0.8}, {0: 1.0, 1: 0.8}])
    asked = [tuner.Question("blocked", (0, 1), lambda: None)]
    assert [tuner.tune(asked, lambda *_: next(rounds)).blocked for _ in range(2)] == [0, 1]


def test_times_of_a_noisy_machine(monkeypatch):
    """Most calls are held up, and a single one is quicker than can be: the third least time is that of the call."""
    random, clock = np.random.default_rng(0), iter(range(10**6))
    true, freak = {4096: 1.0, 8192: 1.2}, iter([0.3])
    monkeypatch.setattr(tuner.time, "perf_counter", lambda: next(clock) * 0.001)

    def seconds(_, tuning):
        held_up = random.random() < 0.7
        return next(freak, None) or true[tuning.ahead_256] * (
            random.uniform(1.5, 9) if held_up else random.uniform(1, 1.02)
        )

    monkeypatch.setattr(tuner, "seconds", seconds)
    found = tuner.measured(tuner.Question("ahead_256", (4096, 8192), lambda: None), Tuning())
    assert found == pytest.approx(true, rel=0.03)


@pytest.mark.parametrize("file", sorted((BENCH / "recorded").glob("*.json")), ids=lambda file: file.stem)
def test_no_choice_is_wrong_on_a_recorded_machine(file):
    times = json.loads(file.read_text())["times"]
    for turn in range(max(len(seconds) for rounds in times.values() for seconds in rounds.values())):
        found = replay_tuning.choices(times, turn)
        assert not replay_tuning.wrong_choices(times, found), (turn, found)


def test_no_choice_of_the_process_changes_a_bit(num_threads):
    indptr, indices, sources = awkward("random")
    rows, weight = rows_of(sources, 300, np.float32), rows_of(300, 300, np.float32, 1)
    bits = (rows.view(np.uint32) >> 16).astype(np.uint16)

    def results():
        of_sums = [spmm(indptr, indices, one, how, **scale) for one in (rows, bits) for how, scale in (
            ("sum", {}), ("max", {"winners": False}), ("mean", {"source_scale": rows[:, 0].copy()})
        )]  # fmt: skip
        return [np.asarray(one[0] if isinstance(one, tuple) else one).tobytes() for one in of_sums] + [
            product(rows, weight).tobytes()
        ]

    expected = results()
    for question in tuner.kernel_questions():
        for value in question.values if question.field not in OF_JOB else ():
            with holding(Tuning(**{question.field: value, "past_caches": min(value, 1)})):
                assert results() == expected, (question.field, value)


def test_rows_under_way():
    with holding(Tuning(ahead_256=4096, ahead_512=8192)):
        assert [arcs_ahead(size) for size in (1, 64, 188, 361, 1024, 10**6)] == [128, 64, 21, 11, 8, 4]
    assert (Tuning().goes_by_blocks(1024), Tuning(blocked=1).goes_by_blocks(1024)) == (False, True)
    assert not Tuning(blocked=1).goes_by_blocks(400)
    with holding(Tuning(vectors=8)):
        assert sum_vectors(True) == sum_vectors(False) == 8
