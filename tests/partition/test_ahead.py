import subprocess
from pathlib import Path

from distgnn.kernels.runtime import jit
from distgnn.partition import partition_graph
from distgnn.partition.ahead import LAST_STEPS, compiling_ahead
from distgnn.partition.core.book import _find_halos
from distgnn.partition.core.owners import _shift
from distgnn.partition.flow.pair_cut import _search
from distgnn.partition.last_steps import compile_last_steps


def test_the_second_process_compiles_for_the_types_of_a_cut(tmp_path):
    compiled = (_search, _shift, _find_halos)
    partition_graph("communities:nodes=600,communities=12,classes=4", 2, tmp_path / "cut")
    of_a_cut = [kernel.signatures for kernel in compiled]
    compile_last_steps(str(tmp_path))
    assert all(of_a_cut) and [kernel.signatures for kernel in compiled] == of_a_cut


def test_one_process_is_started_by_the_first_missing_kernel_and_ends_with_the_block(monkeypatch):
    monkeypatch.setenv("DISTGNN_NUM_THREADS", "2")
    started = []

    class Recorded(subprocess.Popen):
        def __init__(self, *args, **options):
            started.append(self)
            super().__init__(*args, **options)

    monkeypatch.setattr(subprocess, "Popen", Recorded)
    before = list(jit.listeners)
    with compiling_ahead([LAST_STEPS]):
        assert started == []
        jit.listeners[-1](0.0)
        assert jit.listeners == before
        assert len(started) == 1 and started[0].poll() is None
        folder = Path(started[0].args[-1])
        assert folder.is_dir()
    assert started[0].poll() is not None and not folder.exists()


def test_nothing_is_started_on_one_core(monkeypatch):
    monkeypatch.setenv("DISTGNN_NUM_THREADS", "1")
    before = list(jit.listeners)
    for wanted in (True, False):
        with compiling_ahead([LAST_STEPS] if wanted else []):
            assert jit.listeners == before
