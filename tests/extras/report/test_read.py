"""What a report is made of: what is none of it is refused in one line, and pipes are not read."""

import os
import re

import pytest
from fuzzing import no_hang
from report_inputs import write_run

from distgnn.errors import DistGNNError, InputError
from distgnn.extras.report.read import read_inputs


def bad_inputs(folder):
    """(name, what the message says)"""
    folder.mkdir()
    (folder / "empty").mkdir()
    yield folder / "nowhere", "no such file or folder"
    yield folder / "empty", "neither a run folder (config.toml) nor a partition folder (partition.json)"
    for name, content, says in [
        ("text.json", "hello", "cannot be read as JSON of a command"),
        ("list.json", "[]", "is no JSON of a command: expected an object"),
        ("number.json", "[1]", "is no JSON of a command: expected an object"),
        ("deep.json", '{"rows": ' + "[" * 100_000, "cannot be read as JSON of a command"),
    ]:
        (folder / name).write_text(content)
        yield folder / name, says
    (folder / "binary.json").write_bytes(b"\xff\xfe\x00")
    yield folder / "binary.json", "cannot be read as JSON of a command"
    run = write_run(folder / "toml")
    (run / "config.toml").write_text("[train\n")
    yield run, "config.toml cannot be read, or is damaged"
    (folder / "parts").mkdir()
    (folder / "parts" / "partition.json").write_text("{}")
    yield folder / "parts", "no format_version"


def test_bad_input_is_one_line(tmp_path):
    good = write_run(tmp_path / "run")
    for path, says in (*bad_inputs(tmp_path / "bad"), (tmp_path / "x" / ".." / "run", "given twice")):
        with pytest.raises(DistGNNError, match=re.escape(says)) as caught:
            read_inputs([str(good), str(path)])
        assert str(path) in str(caught.value) and "\n" not in str(caught.value)


def test_pipes_are_refused_or_named(tmp_path):
    """Reading one may never end."""
    (tmp_path / "config.toml").write_text("[train]\nepochs = 2\n")
    for name in ("metrics.jsonl", "summary.json", "bench.json"):
        os.mkfifo(tmp_path / name)
    with no_hang():
        assert len(read_inputs([str(tmp_path)])["run"][0].damage) == 2
        with pytest.raises(InputError):
            read_inputs([str(tmp_path / "bench.json")])
