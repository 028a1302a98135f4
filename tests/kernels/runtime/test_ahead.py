import subprocess
from pathlib import Path

from distgnn.fitting.last_kernels import LAST_KERNELS
from distgnn.kernels.runtime import jit
from distgnn.kernels.runtime.ahead import compiling_ahead


def test_one_process_is_started_by_the_first_missing_kernel_and_ends_with_the_block(monkeypatch):
    monkeypatch.setenv("DISTGNN_NUM_THREADS", "2")
    started = []

    class Recorded(subprocess.Popen):
        def __init__(self, *args, **options):
            started.append(self)
            super().__init__(*args, **options)

    monkeypatch.setattr(subprocess, "Popen", Recorded)
    before = list(jit.listeners)
    with compiling_ahead([LAST_KERNELS]):
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
        with compiling_ahead([LAST_KERNELS] if wanted else []):
            assert jit.listeners == before
