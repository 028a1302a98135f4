"""Measure the code: `python tests/house/measure_house.py [CHECKOUT ...]`, by default this one.

Per room (a folder with modules): files, lines, comment lines per hundred, the longest file and function. Then totals
per package and for each checkout: lines, median lines of a file and of a function, files in the fullest room.
A comment line holds nothing but a comment; lines of a file are all lines, those of a function from `def` to its end.
"""

import ast
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

PACKAGES = ("distgnn", "partition", "kernels", "datasets")


@dataclass
class File:
    """What is counted in one file."""

    path: Path
    lines: int
    comments: int
    functions: list[int]


def read_file(path: Path) -> File:
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()
    comments = sum(line.lstrip().startswith("#") for line in lines)
    nodes = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return File(path, len(lines), comments, [node.end_lineno - node.lineno + 1 for node in nodes])


def describe(name: str, files: list[File]) -> str:
    lines, comments = sum(file.lines for file in files), sum(file.comments for file in files)
    modules = sum(file.path.name != "__init__.py" for file in files)
    functions = [length for file in files for length in file.functions]
    per_hundred = 100 * comments / max(lines, 1)
    return (
        f"{name:<32} {modules:>5} {lines:>7} {per_hundred:>8.1f} {middle(file.lines for file in files):>8.0f} "
        f"{max(file.lines for file in files):>8} {middle(functions):>9.0f} {max(functions, default=0):>8}"
    )


def middle(values: Iterable[int]) -> float:
    return median(list(values) or [0])


def measure(root: Path) -> None:
    print(f"{root}\n{'room':<32} files   lines comm/100  med.file max.file med.func max.func")
    everything: list[File] = []
    fullest = (0, "")
    for package in PACKAGES:
        files = [read_file(path) for path in sorted((root / package).rglob("*.py"))]
        rooms = sorted({file.path.parent for file in files})
        for room in rooms:
            mine = [file for file in files if file.path.parent == room]
            modules = sum(file.path.name != "__init__.py" for file in mine)
            fullest = max(fullest, (modules, str(room.relative_to(root))))
            print(describe(str(room.relative_to(root)), mine))
        if len(rooms) > 1:
            print(describe(f"{package}, all rooms", files))
        everything += files
    print(describe("all packages", everything))
    print(f"fullest room: {fullest[1]}, {fullest[0]} modules")
    tests = [read_file(path) for path in sorted((root / "tests").rglob("*.py")) if "bench" not in path.parts]
    if tests:
        print(describe("tests without bench", tests))


if __name__ == "__main__":
    for number, root in enumerate(sys.argv[1:] or [Path(__file__).resolve().parents[2]]):
        print(end="\n" if number else "")
        measure(Path(root).resolve())
