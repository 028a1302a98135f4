"""The steps of a rank's start, one after the other, timed; startup.py runs it on ranks and says what they are.

mpiexec -n 2 python tests/bench/end_to_end/phases.py parts/ 1700000000.0    # time.time() when mpiexec was started
"""

import functools
import importlib
import sys
import time


def main() -> None:
    """Time each step; rank 0 prints."""
    parts, started = sys.argv[1], float(sys.argv[2])
    spent = {"python": (time.time() - started, time.process_time())}

    def step(name: str, work):
        began = time.perf_counter(), time.process_time()
        result = work()
        before = spent.get(name, (0.0, 0.0))
        spent[name] = before[0] + time.perf_counter() - began[0], before[1] + time.process_time() - began[1]
        return result

    mpi = step("mpi", lambda: importlib.import_module("mpi4py.MPI"))
    step("torch", lambda: importlib.import_module("torch"))
    step("numba", lambda: importlib.import_module("numba"))
    for name in ("nn", "train.trainer", "datasets", "partition"):
        step("ours", functools.partial(importlib.import_module, f"distgnn.{name}"))
    dg = importlib.import_module("distgnn")
    graph = step("load", lambda: dg.load(parts))
    model = dg.nn.GraphSAGE(graph.num_feats, 256, graph.num_classes)
    trainer = dg.Trainer(model, graph, dg.TrainConfig(epochs=1))
    step("epoch", trainer.fit)
    if mpi.COMM_WORLD.rank == 0:
        print("   " + "  ".join(f"{name} {wall:.2f} ({cpu:.2f})" for name, (wall, cpu) in spent.items()), flush=True)


if __name__ == "__main__":
    main()
