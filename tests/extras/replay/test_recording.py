"""Recordings on disk, and what cannot be recorded."""

from dataclasses import replace

import pytest

from distgnn.config import RunConfig, Schedule, Settings, TrainConfig
from distgnn.config.model import ModelConfig
from distgnn.errors import InputError
from distgnn.extras.replay.measure import Measuring, check_replayable
from distgnn.extras.replay.recording import Recording, read_recordings, write_recordings

SETTINGS = Settings(TrainConfig(), ModelConfig(), RunConfig(), Schedule())


def test_recordings_come_back_and_others_are_refused(tmp_path):
    events = [("compute", "dense", 0.5), ("send", 0, 1, 8), ("wait", [[0, 0]])]
    written = [Recording(rank, 2, [events], [[0, 8]], 100) for rank in (0, 1)]
    assert read_recordings(tmp_path, {"seed": 0}) is None
    write_recordings(written, tmp_path, {"seed": 0})
    assert read_recordings(tmp_path, {"seed": 0}) == written
    with pytest.raises(InputError, match="other settings"):
        read_recordings(tmp_path, {"seed": 1})
    (tmp_path / "rank-1.json").write_text("{")
    with pytest.raises(InputError, match="is damaged"):
        read_recordings(tmp_path, {"seed": 0})
    key = tmp_path / "recordings.json"
    key.write_text(key.read_text().replace('"format_version": 1', '"format_version": 2'))
    with pytest.raises(InputError, match="another version"):
        read_recordings(tmp_path, {"seed": 0})


@pytest.mark.parametrize("train", [{"task": "link"}, {"verify_every": 2}, {"inductive": True}])
def test_what_a_part_cannot_do_alone_is_refused(train):
    with pytest.raises(InputError, match="replay"):
        check_replayable(replace(SETTINGS, train=TrainConfig(**train)), 2)
    with pytest.raises(InputError, match="single part"):
        check_replayable(SETTINGS, 1)
    with pytest.raises(InputError, match="at_once is 0"):
        Measuring(at_once=0).check()
