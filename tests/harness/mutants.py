"""The tables of mutants (tests/bench/mutation/*.toml; an extra's: tests/extras/NAME/mutants.toml): one small fault
each, and the tests that must see it.

[[mutant]]
name = "resume forgets the plateau's counter"       unique; what `--only` takes
file = "distgnn/train/lr_schedule.py"               from the root of the checkout
old = '''...'''                                     occurs once in the file
new = '''...'''                                     what stands there instead
means = "what a user would see"
tests = ["tests/train/test_trainer.py::test_x"]     ids of pytest, as few as will do
equivalent = "why no test can tell"                 instead of tests: the mutant is listed, not run
"""

import ast
import hashlib
import re
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[2]
TABLES = ROOT / "tests" / "bench" / "mutation"
EXTRAS = ROOT / "tests" / "extras"
COMPILERS = ("kernel", "inline", "njit", "intrinsic")


@dataclass(frozen=True)
class Mutant:
    """One fault; see above."""

    area: str
    name: str
    file: str
    old: str
    new: str
    means: str
    tests: tuple[str, ...] = ()
    equivalent: str = ""

    @property
    def digest(self) -> str:
        """Changes with the mutant, the file that it changes and the files of its tests: results are kept by it."""
        found = hashlib.sha256(repr(self).encode())
        for file in sorted({self.file, *(test.partition("::")[0] for test in self.tests)}):
            found.update((ROOT / file).read_bytes())
        return found.hexdigest()[:16]

    def changed(self, text: str) -> str:
        """The text of the file with the fault."""
        return text.replace(self.old, self.new)


def read_mutants() -> list[Mutant]:
    """All mutants, table by table. Raises: TypeError for a key that there is not."""
    found = []
    for path in [*sorted(TABLES.glob("*.toml")), *sorted(EXTRAS.glob("*/mutants.toml"))]:
        rows = tomllib.loads(path.read_text(encoding="utf-8"))["mutant"]
        area = path.parent.name if path.stem == "mutants" else path.stem
        found += [Mutant(area, **row | {"tests": tuple(row.get("tests", ()))}) for row in rows]
    return found


def faults_of(mutant: Mutant) -> list[str]:
    """What is wrong with an entry of a table, by the files alone."""
    path = ROOT / mutant.file
    if not path.is_file():
        return [f"{mutant.name}: no file {mutant.file}"]
    text, found = path.read_text(encoding="utf-8"), []
    if text.count(mutant.old) != 1:
        found.append(f"{mutant.name}: the old text occurs {text.count(mutant.old)} times in {mutant.file}")
    elif mutant.old == mutant.new:
        found.append(f"{mutant.name}: nothing changes")
    else:
        try:
            ast.parse(mutant.changed(text))
        except SyntaxError as error:
            found.append(f"{mutant.name}: what it makes of {mutant.file} is no Python ({error})")
    if bool(mutant.tests) == bool(mutant.equivalent):
        found.append(f"{mutant.name}: needs tests, or a reason why none can tell")
    return found + [f"{mutant.name}: no test {test}" for test in mutant.tests if not _exists(test)]


def _exists(test: str) -> bool:
    """Is there such a function, and does it run on so many ranks? Other parameters are not looked at."""
    file, _, name = test.partition("::")
    path = ROOT / file
    if not path.is_file():
        return False
    if not name:
        return True
    counts = _rank_counts(path).get(name.partition("[")[0].rpartition("::")[2])
    asked = re.search(r"(\d+)ranks\]$", name)
    return counts is not None and (asked is None or int(asked[1]) in counts)


@cache
def _rank_counts(path: Path) -> dict[str, set[int]]:
    """Functions of a file, and the rank counts of each: none where it is not marked."""
    found = {}
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef):
            marks = (one for one in node.decorator_list if isinstance(one, ast.Call))
            found[node.name] = {
                count.value
                for mark in marks
                if ast.unparse(mark.func) == "pytest.mark.mpi"
                for count in mark.args
                if isinstance(count, ast.Constant)
            }
    return found


def is_compiled(mutant: Mutant) -> bool:
    """Does the fault stand in code that becomes machine code, or in a constant that may be part of it?"""
    text = (ROOT / mutant.file).read_text(encoding="utf-8")
    first = text[: text.index(mutant.old)].count("\n") + 1
    last = first + mutant.old.count("\n")
    around = [node for node in ast.walk(ast.parse(text)) if _spans(node, first, last)]
    if not any(isinstance(node, ast.FunctionDef | ast.ClassDef) for node in around):
        return True
    return any(_is_kernel(node) for one in around for node in ast.walk(one) if isinstance(one, ast.FunctionDef))


def _spans(node: ast.AST, first: int, last: int) -> bool:
    lines = getattr(node, "lineno", None), getattr(node, "end_lineno", None)
    return None not in lines and lines[0] <= first and last <= lines[1]


def _is_kernel(node: ast.AST) -> bool:
    if not isinstance(node, ast.FunctionDef):
        return False
    names = [ast.unparse(one).partition("(")[0].rpartition(".")[2] for one in node.decorator_list]
    return any(name in COMPILERS for name in names)


def importers(file: str) -> list[str]:
    """The file and all files of kernels/ and partition/ that take something from it, at whatever remove."""
    files = [path.relative_to(ROOT) for top in ("kernels", "partition") for path in sorted((ROOT / top).rglob("*.py"))]
    modules = {"distgnn." + ".".join(path.with_suffix("").parts): path for path in files}
    takes = {path: _imports(path) & modules.keys() for path in files}
    found, waiting = {Path(file)}, [Path(file)]
    while waiting:
        name = "distgnn." + ".".join(waiting.pop().with_suffix("").parts)
        more = {path for path, taken in takes.items() if name in taken and path not in found}
        found |= more
        waiting += more
    return sorted(str(path) for path in found)


@cache
def _imports(path: Path) -> set[str]:
    nodes = ast.walk(ast.parse((ROOT / path).read_text(encoding="utf-8")))
    return {node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module}
