"""Run mypy over the package: `python tests/house/check_types.py [ROOM ...]`, a ROOM as "partition.core", "distgnn.ops".

Three packages lie beside `distgnn/` in a checkout and inside it once installed, which mypy cannot know. It is shown a
folder of links laid out as installed; messages name the files of the checkout. The settings are in pyproject.toml.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MAPPED = ("partition", "kernels", "datasets")


def main() -> int:
    cache = ROOT / ".mypy_cache"
    with tempfile.TemporaryDirectory() as folder:
        link_as_installed(Path(folder))
        words = [word for room in sys.argv[1:] for word in ("-p", _package(room))] or ["-p", "distgnn"]
        command = [sys.executable, "-m", "mypy", "--config-file", ROOT / "pyproject.toml", "--cache-dir", cache, *words]
        environment = os.environ | {"MYPYPATH": folder}
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    for line in (done.stdout + done.stderr).splitlines():
        name = line.removeprefix("distgnn/")
        print(name if name.split("/")[0] in MAPPED else line)
    return done.returncode


def link_as_installed(folder: Path) -> None:
    """Make links in a folder to the package, laid out as installed."""
    package = folder / "distgnn"
    package.mkdir()
    for path in [*(ROOT / "distgnn").iterdir(), *(ROOT / name for name in MAPPED)]:
        if path.name != "__pycache__":
            (package / path.name).symlink_to(path)


def _package(room: str) -> str:
    return room if room.split(".")[0] == "distgnn" else f"distgnn.{room}"


if __name__ == "__main__":
    sys.exit(main())
