"""The documentation is true where a program can tell: links, paths, tables, the command line, and what pages load."""

from pathlib import Path

import check_links
import check_prose
import make_command_line
import make_formats
import make_layers
import make_reports
import make_site
import pytest

from distgnn.partition.core.part_arrays import PART_ARRAYS

ROOT = Path(__file__).resolve().parents[2]


MAKERS = (make_command_line, make_layers, make_formats)


def test_links_paths_and_options_lead_somewhere():
    made = {maker.PAGE.relative_to(ROOT).as_posix(): maker.page() for maker in MAKERS}
    assert tuple(made) == check_links.GENERATED
    assert list(check_links.find_problems(ROOT, made)) == []


def test_the_generated_pages_have_what_the_program_has():
    page = make_command_line.page()
    assert "\n## distgnn train\n" in page and "\n| `--epochs` | integer | " in page
    assert "\n| GATConv | " in make_layers.page()
    assert make_formats.page().count("\n| `") == len(PART_ARRAYS)


def test_the_page_of_an_extra_is_what_the_program_says():
    for file in sorted(make_command_line.EXTRAS.glob("*.md")):
        assert file.read_text() == make_command_line.extra_page(file.stem), "python tests/house/make_command_line.py"


@pytest.mark.parametrize("report", make_reports.pages(), ids=lambda report: report.stem)
def test_a_pages_tables_are_what_its_data_give(report):
    text = report.read_text()
    assert text == make_reports.page(report), "python tests/house/make_reports.py"
    assert make_reports.TABLE.search(text)


def test_a_table_that_was_changed_by_hand_is_found(tmp_path):
    (tmp_path / "a.json").write_text('{"tables": {"t": {"columns": ["x"], "rows": [["1"]]}}}')
    (tmp_path / "a.md").write_text("<!-- table: t -->\n| x |\n|---|\n| 2 |\n\nend\n")
    assert make_reports.page(tmp_path / "a.md") == "<!-- table: t -->\n| x |\n|---|\n| 1 |\n\nend\n"


def test_prose_is_within_its_limits(capsys):
    assert check_prose.main() == 0, capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "lengths"),
    [
        ("One two three. Four `a b c` [five six](x.md).", [3, 4]),
        ("One two\nthree\n\n- four\n  five\n- six", [3, 2, 1]),
        ("# A heading\n\n```\nno. Prose here\n```\n| a | table. |\n\nHere, e.g. This one.", [4]),
    ],
)
def test_sentences_are_counted_in_prose_alone(text, lengths):
    assert [len(check_prose.words(one)) for one in check_prose.sentences(text)] == lengths


def test_a_long_sentence_is_found_in_a_table_too():
    long = "word " * 36
    assert len(check_prose.long_sentences(f"{long}.\n\n| {long} | short |\n", "page")) == 2


def test_numbers_are_those_outside_tables_and_code():
    assert check_prose.numbers("It takes 3.5 of `7` [in 9](x8.md).\n\n| 4 |\n") == ["3.5", "9"]


def test_an_american_spelling_is_named_by_its_line():
    text = "the optimiser\n`optimizer=` and\nthe optimizer\n"
    assert list(check_prose.american(text, "page")) == ["page:3: British spelling elsewhere: optimizer"]


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


def test_an_option_that_no_command_has_is_named(tmp_path):
    made = {check_links.OPTIONS: "| `--lr`, `--no-lr` | number |\n"}
    (tmp_path / "README.md").write_text("`--lr 1 --no-lr`, srun --mpi=pmi2\n\n---\n`--rate`")
    assert list(check_links.find_problems(tmp_path, made)) == ["README.md:4: no such option: --rate"]


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
