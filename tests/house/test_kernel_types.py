"""Functions of kernels and cuts that Python runs say their types; of those that numba compiles, numba has them."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
COMPILED = {"kernel", "inline", "intrinsic"}
WITHOUT = {"simd", "check"}  # values of LLVM, which has no types; numpy beside each kernel, with its arguments


def unannotated(node: ast.AST) -> Iterator[ast.FunctionDef]:
    """Plain functions without types, outside functions that numba compiles."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef):
            if any(ast.unparse(one).split("(")[0] in COMPILED for one in child.decorator_list):
                continue
            given = [one for one in (*child.args.args, *child.args.kwonlyargs) if one.arg not in ("self", "cls")]
            if (child.returns is None and child.name != "__init__") or any(one.annotation is None for one in given):
                yield child
        yield from unannotated(child)


def test_what_python_runs_is_annotated():
    every = (file for folder in ("kernels", "partition") for file in (ROOT / folder).rglob("*.py"))
    files = [file for file in every if file.parent.name not in WITHOUT]
    found = [(file.name, one.name, one.lineno) for file in files for one in unannotated(ast.parse(file.read_text()))]
    assert found == []


def test_a_function_without_types_is_found():
    text = "@kernel\ndef rows(a): ...\ndef plain(a): ...\ndef typed(a: int) -> int:\n    def inside(b): ...\n"
    assert [one.name for one in unannotated(ast.parse(text))] == ["plain", "inside"]
