"""Check that what the documentation names exists: `python tests/house/check_links.py`; part of `make lint`.

Looked at: the Markdown files at the top and in docs/ (links with their anchors, and paths), and the Python files of the
package (paths in comments and docstrings). A path is a word that begins with a folder of ours and ends with `/` or the
suffix of a text file. Every page in docs/benchmarks but the index has JSON beside it, or names the commit that had its
script and data. Options that README and guide name are in the generated page of the command line, which a test gives,
or in the list of other programs' options; the page of an extra has its own.
"""

import os
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ("distgnn", "partition", "kernels", "datasets")
FOLDERS = "|".join((*SOURCES, "tests", "docs", r"\.ci"))
PATH = re.compile(rf"(?<![\w/.<-])(?:{FOLDERS})/(?:[\w.-]+/)*(?:[\w-]+\.(?:py|md|json|toml|txt|yml))?(?![\w…*<{{])")
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
CODE = re.compile(r"`[^`\n]*`")
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]+")
OPTIONS = "docs/guide/command-line.md"
GENERATED = (OPTIONS, "docs/guide/layers.md", "docs/part-files.md")  # by `make docs`; in no commit
MADE = re.compile(r"<!-- options -->.*?<!-- end -->", re.DOTALL)  # in the page of an extra
OF_OTHERS = {
    *("--install-completion", "--shm-size"),  # typer, docker
    *("--batch-size", "--fanout"),  # of the contestant dgl-sampling
    *("--mpi", "--cpu-bind", "--kill-on-bad-exit", "--nodes", "--ntasks-per-node", "--cpus-per-task"),  # Slurm
    *("--time", "--signal", "--requeue", "--open-mode"),  # Slurm
    *("--bind-to", "--map-by"),  # Open MPI
}
SCRIPT = re.compile(r"^python tests/.*", re.MULTILINE)  # has options of its own
HEADING = re.compile(r"^#{1,6} (.+)$", re.MULTILINE)


def main() -> int:
    problems = sorted(set(find_problems(ROOT)))
    print("\n".join(problems) if problems else "all links and paths lead somewhere")
    return 1 if problems else 0


def find_problems(root: Path, made: Mapping[str, str] | None = None) -> Iterator[str]:
    """One line "file:line: what is missing" for each broken link or path below a checkout.

    Args: made: texts of generated pages by their path; of one that is not there neither headings nor options are known.
    """
    made = {} if made is None else made
    for file in pages(root):
        yield from _broken_links(root, file, made)
        yield from _missing_paths(root, file)
        if file.parent.name == "benchmarks" and file.stem != "index" and not _has_data(file):
            yield f"{file.relative_to(root)}:1: a report needs its data beside it: {file.stem}.json"
    for folder in SOURCES:
        for file in sorted((root / folder).rglob("*.py")):
            yield from _missing_paths(root, file)
    if OPTIONS in made:
        core = set(OPTION.findall(made[OPTIONS])) | OF_OTHERS
        for file in pages(root):
            if file.parent == root / "docs" / "guide" or file.name == "README.md":
                yield from _unknown_options(root, file, core)
        for file in sorted((root / "docs" / "extras").glob("*.md")):
            own = OPTION.findall(MADE.search(file.read_text())[0])  # type: ignore[index]
            yield from _unknown_options(root, file, core | set(own))


def pages(root: Path) -> list[Path]:
    """The pages that people write, at the top and in docs/."""
    found = [*sorted(root.glob("*.md")), *sorted((root / "docs").rglob("*.md"))]
    return [page for page in found if page.relative_to(root).as_posix() not in GENERATED]


def _has_data(page: Path) -> bool:
    return page.with_suffix(".json").is_file() or re.search(r"at commit [0-9a-f]{8}", page.read_text()) is not None


def _missing_paths(root: Path, file: Path) -> Iterator[str]:
    text = file.read_text()
    for match in PATH.finditer(text):
        if match[0] not in ("distgnn/", "docs/", *GENERATED) and not (root / match[0]).exists():
            yield f"{_place(root, file, text, match.start())}: no such path: {match[0]}"


def _unknown_options(root: Path, file: Path, known: set[str]) -> Iterator[str]:
    text = SCRIPT.sub(_blank, file.read_text())
    for match in OPTION.finditer(text):
        if match[0] not in known:
            yield f"{_place(root, file, text, match.start())}: no such option: {match[0]}"


def _broken_links(root: Path, file: Path, made: Mapping[str, str]) -> Iterator[str]:
    text = file.read_text()
    prose = FENCE.sub(_blank, text)
    for match in LINK.finditer(CODE.sub(_blank, prose)):
        if re.match(r"[a-z]+:", match[1]):
            continue
        name, _, anchor = match[1].partition("#")
        target = (file.parent / name).resolve() if name else file
        known = os.path.relpath(target, root)
        place = _place(root, file, text, match.start())
        if known in GENERATED:
            wrong = anchor and known in made and anchor not in anchors(made[known])
        elif target.exists():
            wrong = anchor and target.suffix == ".md" and anchor not in anchors(target.read_text())
        else:
            wrong = False
            yield f"{place}: no such file: {match[1]}"
        if wrong:
            yield f"{place}: no such heading: {match[1]}"


def _blank(match: re.Match) -> str:
    """As many characters and lines, so that places stay."""
    return re.sub(r"[^\n]", " ", match[0])


def _place(root: Path, file: Path, text: str, position: int) -> str:
    return f"{file.relative_to(root)}:{text.count(chr(10), 0, position) + 1}"


def anchors(text: str) -> set[str]:
    """The anchors that Python-Markdown's `toc` extension, and GitHub for plain words, make of the headings."""
    found: set[str] = set()
    for heading in HEADING.findall(FENCE.sub("", text)):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
        slug = re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", plain.encode("ascii", "ignore").decode()).strip().lower())
        number, unique = 1, slug
        while unique in found:
            unique, number = f"{slug}_{number}", number + 1
        found.add(unique)
    return found


if __name__ == "__main__":
    sys.exit(main())
