"""pytest plugin for `@pytest.mark.mpi(1, 2, 4)`: one test id per rank count, run under a real `mpiexec`.

```
pytest (this plugin)                   collects, sorts by rank count, reports        mpi_marker.py
  └─ one job per rank count            starts, watches, kills                        mpi_job.py
       └─ mpiexec -n P                 each rank runs pytest on the job's ids        mpi_rank.py
```
A test passes if it passes on every rank. After a hang or an abort the tests that are left get a new job. A test may
set its own limit: `@pytest.mark.mpi(2, timeout=30)`. Limits are seconds of a quiet machine: speed.py stretches them.
Fixtures: `num_ranks`, `comm`, `shared_tmp_path`.

Under `pytest -n 3` (pytest-xdist; what `make test` does) one worker begins with all tests of several ranks, one with
those of one rank, the third with files that have slow tests; who is done takes another file. Ranks that wait for each
other, or for a kernel that one of them compiles, sleep (tests/conftest.py): so two cores are enough for three.
"""

import re
import time
from dataclasses import dataclass, field
from pathlib import Path

import mpi_report
import pytest
from mpi_job import Job, JobFailure

RANK_PLUGIN = "mpi_rank"
MOST_TESTS = 500  # of a job: each graph keeps a communicator to the end, and MPICH has 2,048 for a process


def pytest_addoption(parser):
    parser.addini("mpi_seconds", "limit for one test under mpiexec, on a quiet machine", default="300")


def pytest_configure(config):
    config.addinivalue_line("markers", "mpi(*ranks, timeout=None): runs once per rank count under a real mpiexec")
    if not config.pluginmanager.hasplugin(RANK_PLUGIN):
        config.pluginmanager.register(Session(config), "mpi_session")


@pytest.hookimpl(trylast=True)
def pytest_generate_tests(metafunc):
    marker = metafunc.definition.get_closest_marker("mpi")
    if marker is None:
        return
    if not marker.args:
        raise pytest.UsageError(f"{metafunc.definition.nodeid}: mpi needs rank counts, as in @pytest.mark.mpi(1, 2, 4)")
    if "num_ranks" not in metafunc.fixturenames:
        metafunc.fixturenames.append("num_ranks")
    metafunc.parametrize("num_ranks", marker.args, ids=[f"{count}ranks" for count in marker.args])


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    # One rank, plain, several ranks. Two workers begin with the longest pieces: several ranks, one rank, files with a
    # slow test. What is left at the end is short, so neither worker waits long for the other.
    shared = hasattr(config, "workerinput")
    order = {0: 1000, 1: 999} if shared else {1: -1}
    slow = {item.path for item in items if shared and item.get_closest_marker("slow")}
    items.sort(key=lambda item: (order.get(_num_ranks(item), _num_ranks(item)), item.path not in slow))  # stable


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    from xdist.scheduler import LoadScopeScheduling

    class ByRanks(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            ranks = re.search(r"(\d+)ranks\]$", nodeid)
            return super()._split_scope(nodeid) if ranks is None else "1 rank" if ranks[1] == "1" else "several ranks"

    config.option.loadscopereorder = False
    return ByRanks(config, log)


@pytest.fixture
def num_ranks() -> int:
    """The rank count of this test; 1 where it is not marked."""
    return 1


@pytest.fixture
def comm(request):
    """A communicator of all ranks that belongs to this test alone: no message of another test can be in it."""
    if request.node.get_closest_marker("mpi") is None:
        pytest.fail("the fixture comm is for tests marked @pytest.mark.mpi(...)", pytrace=False)
    from mpi4py import MPI

    duplicate = MPI.COMM_WORLD.Dup()
    failed_before = request.session.testsfailed
    yield duplicate
    if request.session.testsfailed == failed_before:  # else messages may be in flight: its number is not used again
        duplicate.Free()


@pytest.fixture
def shared_tmp_path(request, tmp_path) -> Path:
    """An empty folder that is the same on all ranks."""
    if request.node.get_closest_marker("mpi") is None:
        return tmp_path
    return Path(request.getfixturevalue("comm").bcast(str(tmp_path)))


def _num_ranks(item) -> int:
    marker = item.get_closest_marker("mpi")
    return item.callspec.params["num_ranks"] if marker else 0


@dataclass
class Session:
    """Runs the marked tests of one pytest session, one job at a time."""

    config: pytest.Config
    job: Job | None = None
    items: list = field(default_factory=list)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self, session):
        self.items = session.items
        try:
            return (yield)
        finally:
            self._stop()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item):
        if not _num_ranks(item):
            return None
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        for report in self._run(item):
            item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True

    def _run(self, item) -> list[pytest.TestReport]:
        """Wait until `item`, the first unfinished one, is done on all ranks; start a job where none runs."""
        began = time.monotonic()
        limit = item.get_closest_marker("mpi").kwargs.get("timeout") or float(self.config.getini("mpi_seconds"))
        try:
            if self.job is None or item.nodeid not in self.job.ids:
                self._stop()
                self.job = Job(self.config, self._left_with(item), _num_ranks(item))
            reports = self.job.wait_for(item.nodeid, limit)
            return mpi_report.merge(self.config, item, reports, self.job.printed(item.nodeid))
        except JobFailure as failure:
            self._stop()
            return [mpi_report.broken(self.config, item, failure, time.monotonic() - began)]

    def _left_with(self, item) -> list[str]:
        """Return the ids from `item` on that have its rank count, as many as one job may run."""
        left = self.items[self.items.index(item) :]
        return [other.nodeid for other in left if _num_ranks(other) == _num_ranks(item)][:MOST_TESTS]

    def _stop(self):
        if self.job is not None:
            self.job.stop()
            self.job = None
