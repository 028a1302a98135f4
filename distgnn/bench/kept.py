"""What a study has measured so far, kept in its folder: an interrupted study goes on where it was.

study/kept/study.json           what was asked, so that another command is refused
study/kept/turns-4.json         one file for each finished piece of work
study/kept/run-4-cd-5/          a training that was interrupted: a run folder
"""

import json
import re
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from distgnn.errors import InputError
from distgnn.system.atomic import replace_file
from distgnn.system.regular_file import OF_KINDS, check_name

FOLDER, ASKED = "kept", "study.json"


class Kept:
    """The finished pieces of a study in `folder`. Args: asked: what a piece depends on; JSON."""

    def __init__(self, folder: Path, asked: dict[str, Any]):
        self.folder: Path = folder / FOLDER
        self._asked = json.loads(json.dumps(asked))

    def open(self) -> None:
        """Make the folder, or go on with it. Raises: InputError for a folder of another study, or of something else."""
        check_folder(self.folder.parent)
        file = self.folder / ASKED
        found = _read(file)
        if found is None:
            if self.folder.parent.is_dir() and any(self.folder.parent.iterdir()):
                raise InputError(f"{self.folder.parent} has files and no study: name another folder")
            try:
                self.folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise InputError(f"cannot write {self.folder}: {error.strerror or error}") from error
            self._write(file, self._asked)
        elif found != self._asked:
            names = [name for name in self._asked if found.get(name) != self._asked[name]] or ["its version"]
            raise InputError(f"{self.folder.parent} has a study with another {names[0]}: name another folder")

    def close(self) -> None:
        """Remove the folder where nothing was kept."""
        if [*self.folder.iterdir()] == [self.folder / ASKED]:
            shutil.rmtree(self.folder)
            with suppress(OSError):  # it has files
                self.folder.parent.rmdir()

    def get(self, name: str, make: Callable[[], Any], holds: Callable[[Any], bool] = lambda found: True) -> Any:
        """A piece of work: as it was kept, or done now. Args: holds: is what was kept what is wanted?"""
        file = self.folder / f"{_file_name(name)}.json"
        found = _read(file)
        if found is None or not holds(found):
            found = json.loads(json.dumps(make()))
            self._write(file, found)
        return found

    def run_folder(self, name: str) -> Path:
        return self.folder / f"run-{_file_name(name)}"

    def drop_run(self, name: str) -> None:
        shutil.rmtree(self.run_folder(name), ignore_errors=True)

    def _write(self, file: Path, content: Any) -> None:
        try:
            replace_file(file, json.dumps(content).encode())
        except OSError as error:
            raise InputError(f"cannot write {file}: {error.strerror or error}") from error


def check_folder(folder: str | Path) -> None:
    """Raise InputError where a file is named in place of a folder."""
    check_name(folder)
    place = Path(folder)
    if place.suffix.lower() in (*OF_KINDS, ".md") or (place.exists() and not place.is_dir()):
        raise InputError(f"{folder}: a study is a folder, with table.csv inside: name one")


def _file_name(name: str) -> str:
    return re.sub(r"[^\w.=-]", "+", name)


def _read(file: Path) -> Any:
    """The content of a file of ours; None where there is none, or it is damaged."""
    try:
        return json.loads(file.read_text())
    except (OSError, ValueError):
        return None
