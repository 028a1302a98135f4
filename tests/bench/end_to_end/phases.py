"""The steps of a rank's start, one after the other, timed; startup.py runs it on ranks and says what they are.

mpiexec -n 2 python tests/bench/end_to_end/phases.py parts/ 1700000000.0    # time.time() when mpiexec was started
"""

import importlib
import sys
import time


def main() -> None:
    """Time each step; rank 0 prints."""
    parts, started = sys.argv[1], float(sys.argv[2])
    seconds = {"python": time.time() - started}

    def step(name: str, work):
        began = time.perf_counter()
        result = work()
        seconds[name] = time.perf_counter() - began
        return result

    mpi = step("mpi", lambda: importlib.import_module("mpi4py.MPI"))
    step("torch", lambda: importlib.import_module("torch"))
    step("numba", lambda: importlib.import_module("numba"))
    for name in ("nn", "train.trainer", "datasets", "partition"):
        seconds["ours"] = seconds.get("ours", 0) + _import_seconds(f"distgnn.{name}")
    dg = importlib.import_module("distgnn")
    graph = step("load", lambda: dg.load(parts))
    model = dg.nn.GraphSAGE(graph.num_feats, 256, graph.num_classes)
    trainer = dg.Trainer(model, graph, dg.TrainConfig(epochs=1))
    step("epoch", lambda: trainer._epoch(0))
    if mpi.COMM_WORLD.rank == 0:
        print("   " + "  ".join(f"{name} {spent:.2f}" for name, spent in seconds.items()), flush=True)


def _import_seconds(name: str) -> float:
    began = time.perf_counter()
    importlib.import_module(name)
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
