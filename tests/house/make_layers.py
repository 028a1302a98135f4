"""Write docs/guide/layers.md from the table that `distgnn models` prints: `python tests/house/make_layers.py`."""

import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "guide" / "layers.md"
HEAD = """# Which layer runs how

Generated from `distgnn/interop/table.py` by `tests/house/make_layers.py`; `distgnn models` prints the same. Every row
is run by a test (`tests/interop/test_table.py`): layers that run give the output and every gradient of one process.
"""
TRIED = """## Beside the plain libraries

Scripts of a few lines, run with rows on 1, 2 and 3 ranks in float64: `python tests/bench/peers/run.py`. What is equal
has the losses, gradients, weights and outputs of PyG or DGL on the whole graph.
"""
TITLES = {"distgnn": "Our models (`--model`)", "dgl": "Layers of DGL 1.1.3", "pyg": "Layers of PyG 2.8.1"}


def page() -> str:
    """The page as the table is now."""
    sys.path.insert(0, str(ROOT))
    from distgnn.interop.table import HOW, LAYERS, tried

    lines = [HEAD, *(f"- **{how}**: {meaning}" for how, meaning in HOW.items()), ""]
    for library, title in TITLES.items():
        lines += [f"## {title}", "", *_rows([layer for layer in LAYERS if layer.library == library]), ""]
    kinds, refused = tried()
    lines += [TRIED, "| scripts | equal on 1, 2 and 3 ranks | refused on several | of these equal on one |"]
    lines += ["|---|---|---|---|", *(f"| {' | '.join(map(str, row))} |" for row in kinds)]
    lines += ["", "| line | scripts and layers |", "|---|---|"]
    lines += [f"| {line.replace('|', '/')} | {names} |" for line, names in refused]
    return "\n".join([*lines, ""])


def _rows(layers: list) -> Iterator[str]:
    yield "| layer | runs | |"
    yield "|---|---|---|"
    yield from (f"| {layer.name} | {layer.how} | {layer.note} |" for layer in layers)


if __name__ == "__main__":
    PAGE.write_text(page())
