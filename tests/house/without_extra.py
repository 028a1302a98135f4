"""The checkout without one extra: `python tests/house/without_extra.py NAME` copies it and runs lint and quick tests.

What is left out: `distgnn/extras/NAME`, `tests/extras/NAME` and `docs/extras/NAME.*`. Without a NAME, each in turn.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT)]
CHECKS = ("check_types", "check_links", "check_prose")
OF_EXTRA = (("distgnn", "/"), ("tests", "/"), ("docs", "."))
QUICK = ("-m", "not mpi and not slow and not real")


def make_copy(names: Sequence[str], place: Path) -> Path:
    """The files of the checkout at `place`, without some extras."""
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    files = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    gone = tuple(f"{folder}/extras/{name}{end}" for name in names for folder, end in OF_EXTRA)
    for file in files:
        if not file.startswith(gone) and (ROOT / file).is_file():
            (place / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / file, place / file)
    return place


def cheap_checks() -> list[list[str]]:
    """Style and the laws of the house, links and sentences among them."""
    laws = ["test_extras.py", "test_floors.py", "test_docs.py", "test_packaging.py", "test_public_names.py"]
    pytest = [sys.executable, "-m", "pytest", "-q", "-x", *QUICK]
    return [
        [sys.executable, "-m", "ruff", "check", "."],
        [*pytest, *(f"tests/house/{law}" for law in laws), "tests/config"],
    ]


def all_checks() -> list[list[str]]:
    """`make lint` and `make quick`."""
    python = sys.executable
    lint = [[python, "-m", "ruff", *words] for words in (("check", "."), ("format", "--check", "."))]
    lint += [[python, f"tests/house/{name}.py"] for name in CHECKS]
    return [*lint, [python, "-m", "pytest", "-q", "-n", "2", *QUICK]]


def run(command: list[str], copy: Path) -> subprocess.CompletedProcess[str]:
    """A command in the copy, whose `distgnn` it imports."""
    environment = os.environ | {"PYTHONPATH": str(copy)}
    return subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True, check=False)


ASKED = """
import io, json, sys
from contextlib import redirect_stderr
from distgnn.cli import main
from distgnn.config import Settings
from distgnn.errors import InputError
lines, values = json.loads(sys.argv[1])
for sys.argv in lines:
    with redirect_stderr(io.StringIO()) as said:
        code = main()
    print(json.dumps([sys.argv, code, said.getvalue()]))
for name, value in values:
    try:
        Settings().with_options({name: value}).checked()
    except InputError as error:
        print(json.dumps([[name, value], 2, f"{error}\\n"]))
    else:
        print(json.dumps([[name, value], 0, ""]))
"""


def requests(names: Sequence[str], copy: Path) -> list[tuple[list[str], int, str]]:
    """Commands, options and values that need an extra: (what, exit code, standard error), all asked by one process."""
    from distgnn.config.extras import extras
    from distgnn.config.option import option_name

    lines, values = [], []
    for extra in (extras()[name] for name in names):
        options = [option_name(one) for kind in extra.options.values() for one in kind.__dataclass_fields__.values()]
        lines += [["distgnn", word, "x"] for word in extra.commands]
        lines += [["distgnn", "train", "x", f"--{one.replace('_', '-')}", "1"] for one in options]
        values += [(option, value) for option, found in extra.choices.items() for value in found]
    done = run([sys.executable, "-c", ASKED, json.dumps([lines, values])], copy)
    assert done.returncode == 0, done.stderr
    return [tuple(json.loads(line)) for line in done.stdout.splitlines()]


def main() -> int:
    from distgnn.config.extras import extras

    names = sys.argv[1:] or list(extras())
    for name in names:
        if name not in extras():
            print(f"no extra {name}: choose from {', '.join(extras())}", file=sys.stderr)
            return 2
        with tempfile.TemporaryDirectory() as folder:
            copy = make_copy([name], Path(folder) / "copy")
            for check in all_checks():
                done = run(check, copy)
                print(f"without {name}: {' '.join(check[1:])}: exit code {done.returncode}", flush=True)
                if done.returncode:
                    print(done.stdout[-4000:] + done.stderr[-4000:])
                    return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
