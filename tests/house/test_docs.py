"""The documentation is true where a program can tell: links, paths, the command line, and what pages load."""

import json
from pathlib import Path

import check_links
import make_command_line
import make_layers
import make_site
import pytest

ROOT = Path(__file__).resolve().parents[2]
REPORTS = sorted((ROOT / "docs" / "benchmarks").glob("*-20*.md"))


def test_links_and_paths_lead_somewhere():
    assert list(check_links.find_problems(ROOT)) == []


def test_the_command_line_page_is_what_the_program_says():
    assert make_command_line.PAGE.read_text() == make_command_line.page(), "python tests/house/make_command_line.py"


def test_the_page_of_layers_is_what_the_program_says():
    assert make_layers.PAGE.read_text() == make_layers.page(), "python tests/house/make_layers.py"


@pytest.mark.parametrize("report", REPORTS, ids=lambda report: report.stem)
def test_a_reports_data_is_what_its_tables_say(report):
    data = json.loads(report.with_suffix(".json").read_text())
    lines = [line for line in report.read_text().splitlines() if line.startswith("|")]
    rows = {tuple(cell.strip() for cell in line[1:-1].split("|")) for line in lines}
    if "tables" in data:  # transcribed; else what a command wrote
        assert data["report"] == report.name and data["commits"] and data["machine"]
        assert {tuple(row) for table in data["tables"] for row in table["rows"]} <= rows


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[a](missing.md)", "README.md:1: no such file: missing.md"),
        ("one\n[a](docs/index.md#nowhere)", "README.md:2: no such heading: docs/index.md#nowhere"),
        ("`kernels/no/such.py`", "README.md:1: no such path: kernels/no/such.py"),
        ("see tests/gone/", "README.md:1: no such path: tests/gone/"),
        ("```\npython tests/bench/gone.py parts\n```", "README.md:2: no such path: tests/bench/gone.py"),
        ("[a](docs/index.md#a-heading-2) `[a](gone.md)` distgnn/bfloat16 parts/x.json", None),
    ],
)
def test_what_leads_nowhere_is_named(text, problem, tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text("# A heading: `2`\n")
    (tmp_path / "README.md").write_text(text)
    assert list(check_links.find_problems(tmp_path)) == ([] if problem is None else [problem])


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('<script src="https://cdn.example/x.js"></script>', True),
        ("<link rel=stylesheet href=//fonts.example/css>", True),
        ("@import url(https://fonts.example/css);", True),
        ('<a href="https://example.org">a link</a><script src="assets/x.js"></script>', False),
        ('<link rel="canonical" href="https://example.org/">', False),
    ],
)
def test_what_a_page_fetches_from_other_hosts_is_found(text, found):
    assert bool(make_site.loads(text)) == found
