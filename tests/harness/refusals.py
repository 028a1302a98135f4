"""The refusals of rows, of the interfaces of PyG and DGL, and of a graph's face, as the source has them."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import distgnn

ROOT = Path(distgnn.__file__).parent
PLACES = ("rows", "interop/pyg", "interop/dgl", "graph/face")
RAISES = ("InputError", "NotDistributed")


def _text(node: ast.AST | None, known: dict[str, str]) -> str:
    """The words of an expression; what is not written there is {}."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(one, known) for one in node.values)
    if isinstance(node, ast.FormattedValue):
        return _text(node.value, known)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _text(node.left, known) + _text(node.right, known)
    if isinstance(node, ast.IfExp):
        return _text(node.body, known) + " | " + _text(node.orelse, known)
    return known.get(node.id, "{}") if isinstance(node, ast.Name) else "{}"


def _calls(tree: ast.AST, known: dict[str, str]) -> Iterator[str]:
    for node in ast.walk(tree):
        name = getattr(getattr(node, "func", None), "id", "") if isinstance(node, ast.Call) else ""
        if name in RAISES:
            yield _text(node.args[0], known)
        elif name == "refuse" and len(node.args) == 2:
            yield _text(node.args[1], known)


@cache
def written() -> set[str]:
    """The text of each refusal. Tables of advice by name (`INSTEAD`) are not among them."""
    trees = [ast.parse(path.read_text()) for place in PLACES for path in sorted((ROOT / place).rglob("*.py"))]
    known: dict[str, str] = {}
    for _ in range(2):  # constants that are made of others
        for tree in trees:
            for node in tree.body:
                if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                    known[node.targets[0].id] = _text(node.value, known)
    return {" ".join(text.split()) for tree in trees for text in _calls(tree, known)} - {"{}"}
