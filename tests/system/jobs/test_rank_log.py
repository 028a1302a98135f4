"""What a rank leaves for others: its log, its status, and the page of memory that its parent reads."""

import os

import pytest

from distgnn.errors import InputError
from distgnn.system.jobs.keeper import JOINED, NOTE_BYTES, NOTE_VARIABLE, _words_of
from distgnn.system.jobs.rank_log import PhaseNote, RankLog


def test_a_log_has_the_traceback_of_a_bug_and_none_of_a_mistake(tmp_path):
    log = RankLog(str(tmp_path), 1)
    log.failure(InputError("no such file"), "loading")
    with pytest.raises(ZeroDivisionError) as caught:
        _ = 1 // 0
    log.failure(caught.value, "epoch 3")
    first, second, *trace = (tmp_path / "logs" / "rank-1.log").read_text().splitlines()
    assert first.endswith(" ended in loading: InputError: no such file")
    assert second.endswith(" ended in epoch 3: ZeroDivisionError: integer division or modulo by zero")
    assert trace[0].startswith("Traceback")


def test_statuses_are_gone_with_a_folder_that_had_nothing_else(tmp_path):
    logs = [RankLog(str(tmp_path / "run"), rank) for rank in (0, 1)]
    logs[1].set_status("{}")
    assert (logs[0].status_of(1), logs[1].status_of(0)) == ("{}", None)
    logs[0].remove_statuses()
    assert os.listdir(tmp_path) == []
    (tmp_path / "file").touch()
    nowhere = RankLog(str(tmp_path / "file"), 0)  # no folder can be made there: the run goes on
    nowhere.write("a line")
    nowhere.set_status("{}")
    assert nowhere.status_of(0) is None


def test_the_parent_reads_what_its_rank_does(monkeypatch):
    page = os.memfd_create("note", 0)
    os.ftruncate(page, NOTE_BYTES)
    monkeypatch.setenv(NOTE_VARIABLE, str(page))
    note = PhaseNote()
    note.set(stage=JOINED, limit="600", log="run/logs/rank-0.log", doing="script.py, after 3 collective calls,")
    assert _words_of(page) == [JOINED, "600", "script.py, after 3 collective calls", "run/logs/rank-0.log"]
    with pytest.raises(KeyError) as caught, note.during("epoch 3, forward"):
        assert _words_of(page)[2] == "epoch 3, forward"
        raise KeyError
    assert caught.value.phase == "epoch 3, forward" and note.phase == ""
    note.set(log="x" * 2 * NOTE_BYTES)
    assert len(_words_of(page)[3]) < NOTE_BYTES
    os.close(page)
