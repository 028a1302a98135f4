"""The cores that this process may use, by affinity and by the control group's quota."""

import os

from distgnn.system import cores


def test_threads_share_the_cores_this_process_may_use(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(7)))
    monkeypatch.setattr(cores, "core_quota", lambda: 1000.0)
    assert [cores.threads_per_rank(ranks) for ranks in (1, 2, 4, 7, 8)] == [7, 3, 1, 1, 1]
    monkeypatch.setattr(cores, "core_quota", lambda: 2.5)
    assert cores.available_cores() == 2
    monkeypatch.setattr(cores, "core_quota", lambda: 0.5)
    assert cores.available_cores() == 1
