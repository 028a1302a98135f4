"""The import rules hold: every file imports from lower floors only, foreign packages where their floor allows them, and
importing `distgnn` costs nothing."""

import ast
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = {"partition": "distgnn.partition", "kernels": "distgnn.kernels", "datasets": "distgnn.datasets"}


BELOW_OPS = "errors system config kernels partition comm"
BELOW_BENCH = f"{BELOW_OPS} datasets ops rows interop graph nn train"


@dataclass(frozen=True)
class Floor:
    """What the files of a package may import: lower packages of ours, foreign ones, and some inside functions only."""

    name: str
    ours: str = ""
    foreign: str = ""
    inside: str = ""


FLOORS = (  # the lowest first
    Floor("errors"),
    Floor("system", "errors", "tomli", "mpi4py cloudpickle numba matplotlib"),
    Floor("config", "errors system", "tomli"),
    Floor("kernels", "errors system config", "numba numpy llvmlite"),
    Floor("datasets", "errors system config kernels", "numpy scipy", "ogb dgl torch pyarrow"),
    Floor("partition", "errors system config kernels datasets", "numpy scipy numba", "pymetis mtkahypar"),
    Floor("comm", "errors system config kernels partition", "mpi4py numpy"),
    Floor("ops", BELOW_OPS, "torch numpy"),
    Floor("rows", f"{BELOW_OPS} ops", "torch numpy"),
    Floor("interop", f"{BELOW_OPS} ops rows", "torch numpy", "dgl torch_geometric"),
    Floor("graph", f"{BELOW_OPS} ops rows interop", "torch numpy"),
    Floor("nn", "errors system config ops rows interop graph", "torch numpy"),
    Floor(
        "train",
        "errors system config partition comm ops rows interop graph",
        "torch numpy scipy safetensors tomli tomli_w",
        "numba mpi4py dgl torch_geometric",
    ),
    Floor("fitting", f"{BELOW_BENCH}", "numpy torch", "matplotlib IPython pandas"),
    Floor("bench", f"{BELOW_BENCH} fitting", "numpy torch", "matplotlib mpi4py pandas"),
    Floor("predicting", f"{BELOW_BENCH} fitting", "numpy torch safetensors", "pyarrow"),
    Floor("cli", f"{BELOW_BENCH} bench fitting predicting", "rich typer", "matplotlib mpi4py torch"),
    Floor(
        "extras", f"{BELOW_BENCH} bench fitting predicting cli", "torch numpy rich typer jinja2 mpi4py", "matplotlib"
    ),
    Floor("__main__", "cli"),  # nobody else imports the program
)
NO_FLOOR = ("distgnn",)  # packages that hold files of several floors, and no code

EXCEPTIONS = {
    ("distgnn.graph.loader", "mpi4py"): "takes a communicator, by default that of all ranks",
    ("distgnn.graph.dist_graph", "mpi4py"): "takes a communicator, by default that of all ranks",
    ("distgnn.graph.cores", "mpi4py"): "asks which ranks share a machine",
    ("distgnn.ops.sums", "mpi4py"): "names the reduction of a single number",
    ("distgnn.system.calls.packing", "torch"): "makes a parametrized module again; only where one was packed",
    ("distgnn.train.self_check", "mpi4py"): "compares all ranks with this one alone",
    ("distgnn.train.run.machine", "mpi4py"): "writes the version of the MPI library into the run folder",
}


@dataclass(frozen=True)
class Import:
    """One imported name: of ours a full module name, of others the package."""

    line: int
    name: str
    inside: bool


def module_of(path: Path) -> str:
    parts = list(path.relative_to(ROOT).with_suffix("").parts)
    parts[:1] = FOLDERS.get(parts[0], parts[0]).split(".")
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = sorted(path for folder in ("distgnn", *FOLDERS) for path in (ROOT / folder).rglob("*.py"))
MODULES = {module_of(path): path for path in FILES}
MOST_FILES = 14  # in a room, without __init__.py
LOOSE = {"__init__.py", "__main__.py", "errors.py"}  # in distgnn/ itself


def floor_of(module: str) -> Floor | None:
    """The floor of the package that a module lies in."""
    name = (module.removeprefix("distgnn.")).split(".")[0]
    return next((floor for floor in FLOORS if floor.name == name), None)


@cache
def imports_of(module: str) -> tuple[Import, ...]:
    path = MODULES[module]
    tree = ast.parse(path.read_text(), str(path))
    return tuple(_imports_below(tree, module, path.name == "__init__.py", False))


def _imports_below(node: ast.AST, module: str, is_package: bool, inside: bool) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
            continue  # imported by nobody
        if isinstance(child, ast.Import):
            yield from (Import(child.lineno, _known(alias.name), inside) for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            base = child.module or ""
            if child.level:
                above = module.split(".")[: (1 if is_package else 0) - child.level or None]
                base = ".".join([*above, base] if base else above)
            yield from (Import(child.lineno, _known(f"{base}.{alias.name}"), inside) for alias in child.names)
        else:
            function = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            yield from _imports_below(child, module, is_package, inside or function)


def _known(name: str) -> str:
    """Return the module of ours that `name` lies in, or the foreign package."""
    if name.split(".")[0] != "distgnn":
        return name.split(".")[0]
    while name not in MODULES:
        name = name.rpartition(".")[0]
    return name


def wrong_imports(module: str) -> list[str]:
    """One line for each import of a module that its floor may not have."""
    floor = floor_of(module)
    if floor is None:
        return [f"{module} stands on no floor: add it to the table"]
    wrong = []
    for found in imports_of(module):
        if not _allowed(found, floor) and (module, found.name) not in EXCEPTIONS:
            place = "" if found.inside else " at the top level"
            wrong.append(f"{module}, line {found.line}: {floor.name} may not import {found.name}{place}")
    return wrong


def _allowed(found: Import, floor: Floor) -> bool:
    if found.name.split(".")[0] == "distgnn":
        other = floor_of(found.name)
        return found.name in NO_FLOOR or other is floor or (other is not None and other.name in floor.ours.split())
    if found.name in sys.stdlib_module_names or found.name in floor.foreign.split():
        return True
    return found.inside and found.name in floor.inside.split()


def test_imports_go_down():
    wrong = [line for module in MODULES if module not in NO_FLOOR for line in wrong_imports(module)]
    assert not wrong, "\n".join(wrong)


def test_no_room_is_crowded():
    files = Counter(path.parent for path in FILES if path.name != "__init__.py")
    crowded = {str(room.relative_to(ROOT)): count for room, count in files.items() if count > MOST_FILES}
    assert crowded == {}, f"more than {MOST_FILES} files: make a sub-package"


def test_no_module_lies_loose_in_the_package():
    assert {path.name for path in (ROOT / "distgnn").glob("*.py")} <= LOOSE


def test_every_exception_is_needed():
    used = {(module, found.name) for module in MODULES for found in imports_of(module)}
    assert set(EXCEPTIONS) <= used


def test_the_package_itself_imports_nothing_but_the_standard_library():
    """Whether a process is a rank is asked before any other module is imported, and a rank is watched from then on."""
    jobs = ("own_rank", "keeper", "processes", "rank_log")
    first = {"distgnn.errors", *(f"distgnn.system.jobs.{name}" for name in jobs)}
    top = [found.name for module in ("distgnn", *first) for found in imports_of(module) if not found.inside]
    assert [name for name in top if name not in {*sys.stdlib_module_names, *first}] == []


def test_no_module_imports_itself_through_others():
    """An import inside a function may hide a circle: it counts too."""
    graph = {
        module: {found.name for found in imports_of(module)} & MODULES.keys() - {module}
        for module in MODULES
        if module != "distgnn"
    }
    free: set[str] = {"distgnn"}
    while True:
        next_free = {module for module, needed in graph.items() if needed <= free} - free
        if not next_free:
            break
        free |= next_free
    assert {module: sorted(needed - free) for module, needed in graph.items() if module not in free} == {}


def test_floors_name_lower_floors_only():
    names = [floor.name for floor in FLOORS]
    assert all(set(floor.ours.split()) <= set(names[:number]) for number, floor in enumerate(FLOORS))


HEAVY = ("torch", "numba", "mpi4py", "numpy", "scipy", "dgl", "matplotlib", "rich")


@pytest.mark.slow
def test_importing_is_cheap():
    """In one process: each package loads more than those before it. Three are tried alone, too: all can come first."""
    heavy = {
        "distgnn": HEAVY,
        "distgnn.system.launch": HEAVY,
        "distgnn.cli": [name for name in HEAVY if name != "rich"],
        "distgnn.datasets": ["torch", "mpi4py", "dgl", "ogb"],
        "distgnn.train.run.run_folder": ["torch", "mpi4py", "dgl"],  # the launcher reads run folders
        "distgnn.partition": ["torch", "mpi4py", "dgl", "pymetis"],
        "distgnn.train.export.plain_model": ["mpi4py", "dgl"],  # models for others: no MPI is started
        "distgnn.nn": ["dgl"],
    }
    source = f"""
import importlib, sys
for module, heavy in {heavy!r}.items():
    importlib.import_module(module)
    for name in heavy:
        if name in sys.modules:
            print(module, "imports", name)
"""
    for text in (source, *(f"import distgnn.{one}" for one in ("partition", "nn", "train"))):
        command = [sys.executable, "-I", "-c", text]
        assert subprocess.run(command, capture_output=True, text=True, timeout=900, check=True).stdout == ""
