"""New folders: whole or not at all, never in place of what is not ours, and never two in one place."""

import json
import os

import pytest

from distgnn.errors import InputError
from distgnn.system.atomic import FolderKind, lock_file, new_folder

KIND = FolderKind("marker.json", r"marker\.json|part-\d+/\w+\.npy", lambda text: "version" in json.loads(text))


def make(place, marker='{"version": 1}'):
    (place / "part-0").mkdir(parents=True)
    (place / "marker.json").write_text(marker)
    (place / "part-0" / "ids.npy").write_text("x")


def test_a_folder_of_ours_is_replaced(tmp_path):
    make(tmp_path / "out")
    with new_folder(tmp_path / "out", KIND, overwrite=True) as folder:
        (folder / "marker.json").write_text('{"version": 2}')
    assert (tmp_path / "out" / "marker.json").read_text() == '{"version": 2}'
    assert os.listdir(tmp_path) == ["out"]


@pytest.mark.parametrize(
    "file, content, why",
    [
        ("marker.json", "not json", r"its marker\.json cannot be read"),
        ("marker.json", "{}", r"its marker\.json is not one of ours"),
        ("thesis.tex", "precious", r"thesis\.tex in it"),
        ("part-0/notes.txt", "precious", r"part-0/notes\.txt in it"),
    ],
)
def test_what_is_foreign_stays(tmp_path, file, content, why):
    make(tmp_path / "out")
    (tmp_path / "out" / file).write_text(content)
    with pytest.raises(InputError, match=why), new_folder(tmp_path / "out", KIND, overwrite=True):
        pass
    assert (tmp_path / "out" / file).read_text() == content


def test_a_link_in_it_is_foreign(tmp_path):
    make(tmp_path / "out")
    (tmp_path / "out" / "part-0" / "more.npy").symlink_to(tmp_path)
    assert "more.npy" in KIND.foreign(tmp_path / "out")


def test_a_lock_is_of_the_file_under_the_name(tmp_path, monkeypatch):
    """Whoever waited for a lock must not hold that of a file which was replaced."""
    (tmp_path / "lock").touch()
    (tmp_path / "new").touch()
    before = os.open

    def replaced_meanwhile(path, flags):
        handle = before(path, flags)
        os.replace(tmp_path / "new", tmp_path / "lock")
        return handle

    monkeypatch.setattr(os, "open", replaced_meanwhile)
    with pytest.raises(FileNotFoundError):
        lock_file(tmp_path / "lock")
