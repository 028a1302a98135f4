"""`distgnn report`: what it accepts, what it refuses in one line, and what it leaves on the disk."""

import os
import sys

import pytest
from fuzzing import no_hang
from report_inputs import bench_row, write_bench, write_run

from distgnn.cli import main
from distgnn.errors import InputError
from distgnn.extras.report import charts
from distgnn.extras.report.read import read_inputs


@pytest.fixture
def report(monkeypatch, capsys):
    """`report(path, …)` gives (exit code, standard output, standard error); drawings stay empty."""
    monkeypatch.setattr(charts, "svg", lambda *_, **__: "<svg></svg>")

    def report(*words) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["distgnn", "report", *map(str, words)])
        code = main()
        return code, *capsys.readouterr()

    return report


def test_any_mix_gives_one_file(report, partition, tmp_path):
    bench = write_bench(tmp_path / "bench.json", [bench_row("cd-0")])
    out = tmp_path / "report.html"
    code, said, err = report(partition, write_run(tmp_path / "run"), bench, "--out", out)
    assert (code, err) == (0, "")
    assert said == f"report: {out}\n"
    page = out.read_text(encoding="utf-8")
    assert page.count("<section") == 3 and "Benchmark: bench.json" in page
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bench.json", "report.html", "run"]


def test_an_existing_file_is_replaced_only_when_asked(report, tmp_path):
    run, out = write_run(tmp_path / "run"), tmp_path / "report.html"
    out.write_text("mine")
    code, _, err = report(run, "--out", out)
    assert (
        code == 2 and err == f"distgnn: error: {out} exists: choose another --out, or add --overwrite to replace it\n"
    )
    assert out.read_text() == "mine"
    assert report(run, "--out", out, "--overwrite", "--quiet") == (0, "", "")
    assert out.read_text().startswith("<!doctype html>")


def bad_inputs(folder):
    """(name, what the message says)"""
    folder.mkdir()
    (folder / "empty").mkdir()
    yield folder / "nowhere", "no such file or folder"
    yield folder / "empty", "neither a run folder (config.toml) nor a partition folder (partition.json)"
    for name, content, says in [
        ("text.json", "hello", "cannot be read as JSON of a command"),
        ("list.json", "[]", "is no JSON of a command: expected an object"),
        ("number.json", "[1]", "is no JSON of a command: expected an object"),
        ("deep.json", '{"rows": ' + "[" * 100_000, "cannot be read as JSON of a command"),
    ]:
        (folder / name).write_text(content)
        yield folder / name, says
    (folder / "binary.json").write_bytes(b"\xff\xfe\x00")
    yield folder / "binary.json", "cannot be read as JSON of a command"
    run = write_run(folder / "toml")
    (run / "config.toml").write_text("[train\n")
    yield run, "config.toml cannot be read, or is damaged"
    (folder / "parts").mkdir()
    (folder / "parts" / "partition.json").write_text("{}")
    yield folder / "parts", "no format_version"


def test_bad_input_is_one_line(report, tmp_path):
    good, out = write_run(tmp_path / "run"), tmp_path / "report.html"
    for path, says in bad_inputs(tmp_path / "bad"):
        code, said, err = report(good, path, "--out", out)
        assert (code, said) == (2, ""), path
        assert err.startswith("distgnn: error: ") and err.count("\n") == 1 and says in err, err
        assert str(path) in err
        assert not out.exists()
    code, _, err = report(good, tmp_path / "x" / ".." / "run", "--out", out)
    assert code == 2 and "given twice" in err
    code, _, err = report(tmp_path / "nowhere", "--out", tmp_path)  # before anything is read
    assert code == 2 and "it is a folder" in err and err.count("\n") == 1


def test_pipes_are_refused_or_named(tmp_path):
    """Reading one may never end."""
    (tmp_path / "config.toml").write_text("[train]\nepochs = 2\n")
    for name in ("metrics.jsonl", "summary.json", "bench.json"):
        os.mkfifo(tmp_path / name)
    with no_hang():
        assert len(read_inputs([str(tmp_path)])["run"][0].damage) == 2
        with pytest.raises(InputError):
            read_inputs([str(tmp_path / "bench.json")])
