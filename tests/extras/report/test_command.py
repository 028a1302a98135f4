"""`distgnn report`: what it accepts, what it refuses in one line, and what it leaves on the disk."""

import sys

import pytest
from report_inputs import bench_row, write_bench, write_run

from distgnn.cli import main
from distgnn.extras.report import page


@pytest.fixture
def report(monkeypatch, capsys):
    """`report(path, …)` gives (exit code, standard output, standard error); drawings stay empty."""
    monkeypatch.setattr(page, "svg", lambda *_, **__: "<svg></svg>")

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


def test_bad_input_is_one_line_before_anything_is_read(report, tmp_path):
    code, said, err = report(tmp_path / "nowhere", "--out", tmp_path)
    assert (code, said) == (2, "") and "it is a folder" in err and err.count("\n") == 1
    code, _, err = report(tmp_path / "nowhere", "--out", tmp_path / "report.html")
    assert code == 2 and err.startswith("distgnn: error: ") and err.count("\n") == 1
    assert not list(tmp_path.iterdir())
