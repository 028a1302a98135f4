"""Names that are markup, terminal control or not encodable, and standard output that is closed or full."""

import json
import os
import subprocess
import sys

import pytest

from distgnn.cli.display import print_columns, print_table
from distgnn.fitting.progress import phases
from distgnn.system.output import plain

STRANGE = "a[/x]b \x1b[31mred\x1b[0m \ud800 \u202e \x9b [bold]c"
SAFE = "a[/x]b \\x1b[31mred\\x1b[0m \\ud800 \\u202e \\x9b [bold]c"


def test_plain_text():
    assert plain(STRANGE) == SAFE
    assert plain("two\nlines\r") == "two\\nlines\\r"
    assert plain("naïve ± 3 × Größe, 图") == "naïve ± 3 × Größe, 图"


def test_tables_and_progress_print_names_as_they_are(capsys):
    print_table(STRANGE, [(STRANGE, STRANGE)])
    print_columns(STRANGE, [STRANGE], [[STRANGE]])
    with phases(visible=True) as advance:
        advance(STRANGE, 1, 1)
    out, err = capsys.readouterr()
    assert out.count(SAFE) == 6
    assert err.count(SAFE) == 1
    assert "\x1b" not in out + err


def test_progress_on_a_terminal_is_one_line_for_each_phase(capsys, monkeypatch):
    monkeypatch.setenv("DISTGNN_TERMINAL", "80x24")
    with phases(visible=True) as advance:
        for done in range(0, 5001, 1000):
            advance("cut", done, 5000)
    with phases(visible=False) as advance:
        advance("cut", 1, 1)
    first, *_, last = capsys.readouterr().err.split("\r\x1b[K")[1:]
    assert first == "cut: 0 %, ? left\r" and last.startswith("cut: ") and last.endswith("/s\n")


def test_a_table_that_is_too_wide_is_several(capsys):
    """160 columns: the names of a row stand in each of them, and no cell is cut."""
    cells = [[f"{row}-{place}".rjust(30, "x") for place in range(8)] for row in range(2)]
    print_columns("wide", list("abcdefgh"), cells, keys=2)
    out = capsys.readouterr().out
    heads = [line.split() for line in out.splitlines() if line.split()[0] == "a"]
    assert heads == [list("abcde"), list("abfgh")] and "…" not in out
    assert all(out.count(cell) == (2 if place < 2 else 1) for row in cells for place, cell in enumerate(row))


def renamed(parts, name: str):
    """The partition folder with another graph name in its manifest."""
    from distgnn.partition.folder.writer import write_manifest

    manifest = json.loads((parts / "partition.json").read_text())
    manifest.pop("sha256")
    write_manifest(parts, manifest | {"name": name})
    return parts


def distgnn(*words, stdout=subprocess.PIPE, **environment) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "distgnn.cli", *map(os.fspath, map(str, words))]
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("LC_", "LANG"))}
    return subprocess.run(
        command, stdout=stdout, stderr=subprocess.PIPE, env=kept | environment, timeout=900, check=False
    )


@pytest.mark.slow
def test_a_graph_of_any_name_is_trained_in_a_locale_of_ascii(parts, tmp_path):
    locale = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    folder = tmp_path / "run[/x] \x1b[31m"
    words = ["train", renamed(parts, STRANGE), "--hidden-feats", 8, "--epochs", 2, "--run-dir", folder]
    done = distgnn(*words, **locale)
    assert done.returncode == 0, done.stderr
    assert b"Traceback" not in done.stderr
    assert b"\x1b" not in done.stdout + done.stderr
    assert b"run[/x] \\x1b[31m" in done.stdout
    done = distgnn("info", parts, **locale)
    assert done.returncode == 0, done.stderr
    assert b"[/x]" in done.stdout and b"\x1b" not in done.stdout


def test_an_error_with_control_characters_is_one_plain_line(run):
    code, _, err = run("train", "no\x1b[2Jwhere\n[/x]\udcff")
    assert code == 2
    assert "no\\x1b[2Jwhere\\n[/x]\\udcff" in err and err.count("\n") == 1


@pytest.mark.slow
def test_a_finished_run_with_full_or_closed_output_is_a_success(parts, two_parts, tmp_path):
    """A full one on two ranks; closed ones in one process."""
    with open("/dev/full", "wb") as full:
        words = ["train", two_parts, "--hidden-feats", 8, "--epochs", 2, "--run-dir", tmp_path / "full"]
        done = distgnn(*words, stdout=full)
    assert done.returncode == 0, done.stderr
    assert b"standard output could not be written (No space left on device)" in done.stderr
    assert b"Traceback" not in done.stderr and b"Exception ignored" not in done.stderr
    assert (tmp_path / "full" / "summary.json").is_file()
    reader, writer = os.pipe()
    os.close(reader)
    done = distgnn("info", parts, stdout=writer)
    os.close(writer)
    assert (done.returncode, b"Error" in done.stderr) == (0, False), done.stderr
    closed = ["sh", "-c", 'exec "$@" >&-', "sh", sys.executable, "-m", "distgnn.cli", "info", str(parts)]
    done = subprocess.run(closed, stderr=subprocess.PIPE, timeout=900, check=False)
    assert (done.returncode, b"Traceback" in done.stderr) == (0, False), done.stderr
