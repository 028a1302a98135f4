"""The line that says that kernels are compiled: only where they are, only once, only where it is wanted."""

import contextlib
import sys

import pytest

from distgnn.kernels.runtime import jit
from distgnn.kernels.runtime.compile_line import TITLE, compile_line, compile_line_from_now_on


@pytest.fixture
def compile_one(monkeypatch):
    """`compile_one(2.0)`: as if a kernel had been compiled, in 2 s."""
    from distgnn.kernels.runtime import compile_line as module

    monkeypatch.setattr(module, "_blocks", [])
    monkeypatch.setattr(jit, "_made", [])

    def compile_one(seconds: float) -> None:
        jit._tell(0.0)
        jit._made.append((True, seconds))
        jit._tell(seconds)

    return compile_one


def test_a_line_at_the_start_and_one_at_the_end(compile_one, capsys):
    with compile_line():
        for _ in range(3):
            compile_one(0.4)
    assert capsys.readouterr().err == f"distgnn: {TITLE} 2 …\ndistgnn: {TITLE} 3, done\n"


def test_on_a_terminal_one_line_is_rewritten(compile_one, capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with compile_line():
        compile_one(1.0)
        compile_one(1.0)
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert err.endswith(f"\rdistgnn: {TITLE} 2, done\n")


@pytest.mark.parametrize("how", ["little", "nothing", "quiet", "outside"])
def test_silent(compile_one, capsys, how):
    with compile_line(visible=how != "quiet") if how != "outside" else contextlib.nullcontext():
        with compile_line():
            if how not in ("nothing", "outside"):
                compile_one(0.1 if how == "little" else 3.0)
    if how == "outside":
        compile_one(3.0)
    assert capsys.readouterr().err == ""


def test_in_a_loop_of_the_users_one_line(compile_one, capsys):
    compile_line_from_now_on(visible=True)
    for _ in range(3):
        compile_one(1.0)
    assert capsys.readouterr().err == f"distgnn: {TITLE} …\n"
    compile_line_from_now_on(visible=False)
    with compile_line(visible=False):
        compile_one(1.0)
    compile_one(1.0)
    assert capsys.readouterr().err == ""
