"""A copy of the checkout in a temporary folder, in which one fault at a time is put and tests are run.

Kernels: the copy takes over the machine code of the checkout, and keeps it valid whatever is changed, but for kernels
of the changed file and of files that take something from it, which are compiled anew in every process. That is done by
a few lines at the end of the copy's kernels/runtime/jit.py.
"""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from mutants import ROOT, Mutant, importers, is_compiled

STAMPS = """
from distgnn.kernels.runtime.jit import _package_stamp
from distgnn import kernels, partition
from pathlib import Path
import json
print(json.dumps({one.__name__: _package_stamp(Path(one.__file__).parent) for one in (kernels, partition)}))
"""
OVERRIDE = """

# Of tests/bench/mutation: machine code stays valid, but for files that a fault is in.
_said.append(True)
_of_the_checkout, _stamp_of, _real_cache_of = {stamps!r}, _package_stamp, _cache_of


def _package_stamp(folder):
    return _of_the_checkout.get(f"distgnn.{{Path(folder).name}}") or _stamp_of(folder)


def _cache_of(function):
    stale = function.__code__.co_filename.endswith({stale!r})
    return NoCache() if stale else _real_cache_of(function)
"""
FAILED = re.compile(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", re.MULTILINE)


class Scratch:
    """One copy; `run` puts a fault in, runs tests, and takes it out again."""

    def __init__(self) -> None:
        self._made = tempfile.TemporaryDirectory(prefix="distgnn-mutants-")
        self.root = Path(self._made.name)
        self._copy()
        self._jit = self.root / "kernels" / "runtime" / "jit.py"
        self._jit_text = self._jit.read_text()
        out = self._call([sys.executable, "-c", STAMPS], 300)[1]
        self._stamps = json.loads(out.strip().splitlines()[-1])

    def _copy(self) -> None:
        """What git knows and what it would add, and compiled kernels, which lie beside the sources."""
        words = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        names = subprocess.run(words, capture_output=True, check=True, text=True).stdout.split("\0")
        kernels = (str(path.relative_to(ROOT)) for path in ROOT.rglob("__pycache__/*.nb[ic]"))
        for name in (*filter(None, names), *kernels):
            source, target = ROOT / name, self.root / name
            if source.is_file():
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source, target)

    def run(
        self, mutant: Mutant | None, tests: tuple[str, ...], seconds: float, stop: str = "-x"
    ) -> tuple[int | None, list[str], float]:
        """(exit code of pytest or None after so many seconds, tests that failed, seconds)."""
        stale = tuple(f"/{name}" for name in importers(mutant.file)) if mutant and is_compiled(mutant) else ()
        self._jit.write_text(self._jit_text + OVERRIDE.format(stamps=self._stamps, stale=stale))
        pytest = [str(Path(sys.executable).with_name("pytest")), stop, "-q", "-p", "no:cacheprovider", *tests]
        began = time.perf_counter()
        if mutant is None:
            code, out = self._call(pytest, seconds)
        else:
            file = self.root / mutant.file
            before = file.read_text(encoding="utf-8")
            try:
                file.write_text(mutant.changed(before), encoding="utf-8")
                code, out = self._call(pytest, seconds)
            finally:
                file.write_text(before, encoding="utf-8")
        return code, FAILED.findall(out), time.perf_counter() - began

    def _call(self, command: list[str], seconds: float) -> tuple[int | None, str]:
        """Exit code and output of a process with a group of its own, so that ranks end with it; None: out of time."""
        # Into a file: what a test that crashed leaves running may hold a pipe open for ever.
        with tempfile.TemporaryFile("w+", errors="replace") as out:
            process = subprocess.Popen(
                command,
                cwd=self.root,
                env=os.environ | {"PYTHONPATH": str(self.root)},
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                code: int | None = process.wait(seconds)
            except subprocess.TimeoutExpired:
                code = None
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            out.seek(0)
            return code, out.read()

    def close(self) -> None:
        """Remove the copy."""
        self._made.cleanup()
