"""The compiler cache: cold processes that start together compile a kernel once."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import distgnn
from distgnn import kernels
from distgnn.kernels.check.cases import self_check
from distgnn.kernels.runtime import jit
from distgnn.kernels.runtime.tiles import registers

from .fresh import ONE_KERNEL, fresh


@pytest.mark.skipif(jit.fcntl is None, reason="no locks on files")
def test_who_loads_lets_others_load_and_who_compiles_is_alone(tmp_path):
    path = tmp_path / "cache" / "sum.lock"
    with jit._file_lock(path):
        other = os.open(path, os.O_RDWR)  # as another process has it
        jit.fcntl.flock(other, jit.fcntl.LOCK_SH | jit.fcntl.LOCK_NB)
        jit.fcntl.flock(other, jit.fcntl.LOCK_UN)
        assert jit._lock_alone(path) and not jit._lock_alone(tmp_path / "another.lock")
        with pytest.raises(BlockingIOError):
            jit.fcntl.flock(other, jit.fcntl.LOCK_SH | jit.fcntl.LOCK_NB)
    jit.fcntl.flock(other, jit.fcntl.LOCK_EX | jit.fcntl.LOCK_NB)
    os.close(other)


@pytest.mark.slow
def test_a_second_process_compiles_nothing():
    """A kernel that captures a compiled function would be compiled anew in every process: numba cannot name it."""
    program = (
        "import sys; from distgnn import kernels; from distgnn.kernels.check.cases import self_check; "
        "self_check(('float32',)); "
        "print(kernels.compilation().compiled, 'numba.typed.typeddict' in sys.modules)"
    )
    self_check(("float32",))
    assert fresh(program)[0] == "0 False\n"  # and what numba needs to compile is not even loaded


OLDER = """
from distgnn.kernels.check.cases import examples
from distgnn import kernels
from distgnn.kernels.check.cases_of import large_graph
from distgnn.kernels.check.reference import difference
left = dict.fromkeys({kinds!r}.split())
for example in examples(({dtype!r},)):
    if example.kernel in left:
        left.pop(example.kernel)
        pairs = list(example.pairs(getattr(kernels, example.kernel), large_graph()))
        assert pairs and all(difference(*pair) <= 1 for pair in pairs), example.label
assert not left, left
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("features", "dtype", "kinds"),
    [
        ("", "float64", "spmm attention product"),
        (
            "+avx,+avx2,+fma,+sse4.2,+ssse3",
            "float32",
            "spmm attention product activate pack_rows dropout cross_entropy",
        ),
    ],
    ids=["SSE2", "AVX2"],
)
def test_older_machines(tmp_path, features, dtype, kinds):
    """Kernels of each kind are right when compiled for narrower registers (any x86-64 runs these).

    `tests/bench/kernels/other_processors.py` runs all of them on processors that are emulated.
    """
    if features and registers() == (32, 10):
        pytest.skip("this machine is one: all other tests run there")
    program = OLDER.format(dtype=dtype, kinds=kinds)
    fresh(program, tmp_path, NUMBA_CPU_NAME="generic", NUMBA_CPU_FEATURES=features)


READ_ONLY = """
import os
import numpy as np
from numba.core.caching import _CacheLocator
def refuse(self):
    raise PermissionError("read-only")
_CacheLocator.ensure_cache_path = refuse
os.access = lambda path, mode: False
from distgnn.kernels.runtime.threads import edge_parts
"""


def test_without_any_folder_kernels_work_and_a_line_says_so(tmp_path):
    """As in a read-only installation whose user has no folder of his own; numba raises an error at import."""
    out, said = fresh(READ_ONLY + "edge_parts(np.array([0, 4], np.int32), 1)" + ONE_KERNEL, tmp_path)
    assert out == "2\n" and said.count("cannot be kept") == said.count("\n") == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_a_folder_that_others_can_write_is_not_read(tmp_path):
    """Pickles that somebody else put there would be executed."""
    (tmp_path / "all").mkdir()
    # What is compiled in its place is kept in a folder of the user's own: once for all processes.
    for mode, compiled, lines in ((0o755, "1\n", 0), (0o777, "1\n", 1), (0o777, "0\n", 0), (0o755, "0\n", 0)):
        for folder in (tmp_path / "all").iterdir():
            folder.chmod(mode)
        out, said = fresh(ONE_KERNEL, tmp_path / "all", XDG_CACHE_HOME=str(tmp_path / "own"))
        assert (out, said.count("are not read"), said.count("\n")) == (compiled, lines, lines)


@pytest.mark.slow
def test_a_folder_that_is_read_only_is_read(tmp_path):
    """As in an image of a container; numba passes over a folder that it cannot write."""
    for program, compiled in ((ONE_KERNEL, "1\n"), (READ_ONLY + ONE_KERNEL, "0\n")):
        assert fresh(program, tmp_path) == (compiled, "")


@pytest.fixture
def copy_of_the_kernels(tmp_path):
    """A package distgnn with nothing but kernels; calling it gives how many kernels a new process compiled."""
    (tmp_path / "distgnn").mkdir()
    shutil.copy(Path(distgnn.__file__), tmp_path / "distgnn")
    folder = tmp_path / "distgnn" / "kernels"
    shutil.copytree(Path(kernels.__file__).parent, folder, ignore=shutil.ignore_patterns("__pycache__"))
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}  # found from the folder it is run in

    def compiled(changed: str) -> int:
        if changed:
            with open(folder / changed, "a") as file:
                file.write("# changed\n")
        command = [sys.executable, "-c", ONE_KERNEL]
        done = subprocess.run(command, cwd=tmp_path, env=environment, check=True, capture_output=True, text=True)
        return int(done.stdout)

    return compiled


@pytest.mark.slow
def test_a_change_in_any_room_makes_a_kernel_stale(copy_of_the_kernels):
    """Helpers of other folders are inlined into kernels; numba looks at the kernel's own file only."""
    assert [copy_of_the_kernels(changed) for changed in ("", "simd/vectors.py", "", "check/cases.py")] == [1, 1, 0, 0]


def test_what_the_stamp_leaves_out_has_no_kernel():
    room = Path(kernels.__file__).parent / jit.NOT_COMPILED
    files = list(room.glob("*.py"))
    assert files and not [file for file in files if "runtime.jit" in file.read_text()]
