"""Laws of the mpi marker, each with a pytest of its own on a small file: what passes, fails, hangs and dies."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow  # each starts a pytest of its own

HARNESS = Path(__file__).with_name("harness")
HEAD = "import os\nimport pytest\nmpi = pytest.mark.mpi\n\n"


@pytest.fixture
def run(tmp_path):
    """Run pytest on a file with the given tests; return (outcome by test id, everything it printed)."""

    def run_pytest(source: str, *options: str, **environment: str) -> tuple[dict[str, str], str]:
        (tmp_path / "test_inner.py").write_text(HEAD + source)
        command = [sys.executable, "-c", "import sys, pytest; sys.path[0] = sys.argv.pop(1); sys.exit(pytest.main())"]
        command += [str(HARNESS), "-p", "mpi_marker", "-p", "no:cacheprovider", "-v", "--tb=short", "-rs", *options]
        answer = subprocess.run(
            command,
            cwd=tmp_path,
            env=os.environ | environment,
            capture_output=True,
            text=True,
            timeout=1800,
            check=False,
        )
        text = answer.stdout + answer.stderr
        outcomes = re.findall(r"^test_inner\.py::(\S+) (PASSED|FAILED|SKIPPED|XFAIL|XPASS)", text, re.MULTILINE)
        return dict(outcomes), text

    return run_pytest


def processes_below(folder: Path) -> list[str]:
    """Return the command lines of the processes that work in `folder`."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if os.readlink(process / "cwd") == str(folder):
                found.append((process / "cmdline").read_text().replace("\0", " "))
        except OSError:
            continue
    return found


def test_one_mpiexec_and_one_id_per_rank_count_in_this_order_and_what_one_rank_says_of_a_test(run):
    """A failure names the rank; skips and expected failures come through."""
    outcomes, text = run(
        """
seen = []

@mpi(2, 1)
@pytest.mark.parametrize("turn", [0, 1])
def test_ranks(comm, num_ranks, turn, shared_tmp_path, tmp_path):
    assert comm.size == num_ranks
    seen.append(os.getpid())
    assert len(seen) == turn + 1 and len(set(seen)) == 1
    assert os.environ["NUMBA_NUM_THREADS"] == os.environ["OMP_NUM_THREADS"] == "1"
    (shared_tmp_path / str(comm.rank)).touch()
    comm.Barrier()
    assert {path.name for path in shared_tmp_path.iterdir()} >= {str(rank) for rank in range(comm.size)}
    assert len(set(comm.allgather(str(tmp_path)))) == num_ranks

def test_plain(num_ranks, shared_tmp_path, tmp_path):
    assert num_ranks == 1 and shared_tmp_path == tmp_path

@mpi(2)
def test_fails(comm):
    print("said by", comm.rank)
    assert comm.rank == 0, "wrong here"

@mpi(2)
def test_next(comm):
    comm.Barrier()

@mpi(2)
def test_skips():
    pytest.skip("no data here")

@mpi(2)
@pytest.mark.xfail(reason="known")
def test_expected(comm):
    assert comm.rank == 0

@mpi(2)
def test_ranks_disagree(comm):
    if comm.rank == 1:
        pytest.skip("only one")
"""
    )
    names = [f"test_ranks[{turn}-{ranks}ranks]" for ranks in (1, 2) for turn in (0, 1)]
    names.insert(2, "test_plain")  # after those of one rank
    assert list(outcomes)[:5] == names
    expected = ["PASSED"] * 5 + ["FAILED", "PASSED", "SKIPPED", "XFAIL", "FAILED"]
    assert list(outcomes.values()) == expected, text
    assert "rank 1 of 2: AssertionError: wrong here" in text
    assert "said by 1" in text and "said by 0" not in text
    assert "no data here" in text
    assert "skipped on rank 1 only" in text


@pytest.mark.slow
def test_hang_abort_and_lonely_failure_fail_alone(run, tmp_path):
    outcomes, text = run(
        """
@mpi(2, timeout=2)
def test_hangs(comm):
    print("before the wait")
    if comm.rank == 1:
        comm.recv()

@mpi(2)
def test_after_hang(comm):
    comm.Barrier()

@mpi(2)
def test_exits(comm):
    if comm.rank == 1:
        os._exit(3)
    comm.Barrier()

@mpi(2)
def test_aborts(comm):
    comm.Abort(5)

@mpi(2, timeout=60)
def test_leaves_others_waiting(comm):
    if comm.rank == 1:
        raise ValueError("alone")
    comm.Barrier()

@mpi(2)
def test_last(comm):
    comm.Barrier()
"""
    )
    assert outcomes == {
        "test_hangs[2ranks]": "FAILED",
        "test_after_hang[2ranks]": "PASSED",
        "test_exits[2ranks]": "FAILED",
        "test_aborts[2ranks]": "FAILED",
        "test_leaves_others_waiting[2ranks]": "FAILED",
        "test_last[2ranks]": "PASSED",
    }, text
    assert re.search(r"time limit: not finished after \d+ s \(unfinished: rank 1 of 2\)", text)
    assert "before the wait" in text and re.search(r'test_inner.py", line \d+ in test_hangs', text)  # where it hangs
    assert re.search("mpiexec ended with exit code (3|9) during this test", text)  # Hydra may end the other rank first
    assert "ValueError: alone" in text and "other ranks were left waiting (unfinished: rank 0 of 2)" in text
    assert processes_below(tmp_path) == []


TWO = """
@mpi(1, 2)
def test_two():
    pass

def test_plain():
    pass
"""


def test_selection_and_collect_only_which_starts_nothing(run):
    outcomes, text = run(TWO, "-m", "mpi", "-k", "1ranks", "--collect-only", "-q", DISTGNN_MPIEXEC="/nonexistent")
    assert outcomes == {} and re.findall(r"<Function (.+)>", text) == ["test_two[1ranks]"], text


def test_stops_at_the_first_failure(run, tmp_path):
    outcomes, text = run(
        """
@mpi(2)
def test_fails():
    assert False

@mpi(2)
def test_sleeps():
    import time
    time.sleep(100)
""",
        "-x",
    )
    assert outcomes == {"test_fails[2ranks]": "FAILED"}, text
    assert processes_below(tmp_path) == []


def test_no_mpiexec_fails_and_says_what_to_do(run):
    outcomes, text = run(TWO, "-m", "mpi", DISTGNN_MPIEXEC="/nonexistent")
    assert set(outcomes.values()) == {"FAILED"}
    assert "/nonexistent" in text and '-m "not mpi"' in text


def test_a_rank_that_cannot_collect_fails_every_test_with_its_output(run):
    outcomes, text = run(
        """
if "DISTGNN_RANKS" in os.environ:
    raise OSError("broken on import")

@mpi(1)
def test_never():
    pass
"""
    )
    assert set(outcomes.values()) == {"FAILED"}, text
    assert "mpiexec ended with exit code" in text and "test_never" in text


def test_limits_stretch_on_a_slow_machine(run):
    """The limit of 1 s is used up, and the test still ends: the machine is said to be 30 times slower."""
    outcomes, text = run(
        """
import speed
speed.REFERENCE_SECONDS = 1e-9

@mpi(2, timeout=1)
def test_sleeps(comm):
    import time
    time.sleep(2.5)
""",
    )
    assert set(outcomes.values()) == {"PASSED"}, text
