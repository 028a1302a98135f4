"""Recordings on disk."""

import pytest

from distgnn.errors import InputError
from distgnn.extras.replay.recording import Recording, read_recordings, write_recordings


def test_recordings_come_back_and_others_are_refused(tmp_path):
    events = [("compute", "dense", 0.5), ("send", 0, 1, 8), ("wait", [[0, 0]])]
    written = [Recording(rank, 2, 1, [events], [[0, 8]], [0.5], 100) for rank in (0, 1)]
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
