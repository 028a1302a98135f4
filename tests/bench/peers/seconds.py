"""Every layer of DGL and PyG that is tested, beside its own library: seconds of a step, and memory.

    distgnn partition GRAPH --parts 1 --direction both --out PARTS
    python tests/bench/peers/seconds.py GRAPH PARTS pyg [PNAConv]

Forward and backward pass of one layer, 64 columns in; the best of three, in a process for each side. Memory is the peak
above what was there before. The slowest beside its library comes first. Not run by pytest.
"""

import importlib
import json
import subprocess
import sys
import time
import warnings
from pathlib import Path

from distgnn.cli.display import print_columns
from distgnn.config import num_threads
from distgnn.system.units import peak_resident_bytes

WIDTH, TURNS, SLOW = 64, 3, 6.0
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "harness"))


def measured(graph: str, parts: str, library: str, words: str, side: str) -> dict[str, tuple[float, float]]:
    """(seconds, GB) of each layer whose name begins with `words`."""
    import distgnn as dg  # before torch, as in the guide

    warnings.simplefilter("ignore")
    import torch
    from against_dgl import Inputs

    from distgnn.datasets import load_graph
    from distgnn.rows.row_tensor import rows_of

    torch.set_num_threads(num_threads())
    dg.import_dgl()
    cases = importlib.import_module(f"{library}_layers")
    cases.WIDTH = WIDTH
    whole = dg.load(parts)
    columns = vars(Inputs.random(whole.num_nodes(), whole.num_edges(), width=WIDTH)).values()
    columns = [one.float() if one.is_floating_point() else one for one in columns]
    spaces = whole.vertex_space, *[whole.arc_space] * 3, whole.vertex_space
    if side == "plain":
        data = load_graph(graph)
        whole = getattr(data, f"to_{library}")(data.edge_list("both", "keep"))
    found = {}
    for name, (make, call) in cases.cases().items():
        if not name.startswith(words):
            continue
        try:
            layer, turns = make(), []
            given = [one.clone() for one in columns]
            rows = Inputs(*(given if side == "plain" else map(rows_of, given, spaces))).trainable()
            Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
            before = peak_resident_bytes()
            while len(turns) < TURNS and max(turns, default=0) < SLOW:
                start = time.perf_counter()
                call(layer, whole, rows).sum().backward()
                turns.append(time.perf_counter() - start)
            found[name] = min(turns), (peak_resident_bytes() - before) / 1e9
        except Exception as error:  # a layer that takes no such widths or dtype
            print(f"{name}: {type(error).__name__}: {str(error).splitlines()[0]}", file=sys.stderr)
    return found


def main() -> None:
    given = (*sys.argv[1:], "")[:4] if len(sys.argv) < 6 else tuple(sys.argv[1:5])
    if len(sys.argv) == 6:
        print(json.dumps(measured(*given, sys.argv[5])))
        return
    sides = []
    for side in ("ours", "plain"):
        done = subprocess.run([sys.executable, __file__, *given, side], stdout=subprocess.PIPE, text=True, check=True)
        sides.append(json.loads(done.stdout.splitlines()[-1]))
    ours, plain = sides
    both = sorted(ours.keys() & plain.keys(), key=lambda name: plain[name][0] / ours[name][0])
    rows = []
    for name in both:
        numbers = (*ours[name], *plain[name])
        rows.append([name, *(f"{number:.3f}" for number in numbers), f"{plain[name][0] / ours[name][0]:.2f}"])
    print_columns("layers", ["layer", "ours, s", "GB", "plain, s", "GB", "times"], rows)


if __name__ == "__main__":
    main()
