"""DistGNN: full-batch training of graph neural networks on clusters of CPU sockets.

    import distgnn as dg
    graph = dg.load("parts/")
    model = dg.nn.GraphSAGE(graph.num_feats, 256, graph.num_classes, num_layers=3)
    result = dg.Trainer(model, graph, dg.TrainConfig(epochs=200, lr=0.01)).fit()

Names are imported when they are first used: `import distgnn` itself is cheap and starts no MPI. Docstrings have
examples that run; in them `graph` is a graph of 60 vertices on one rank, with 8 features and 4 classes.
"""

import importlib
import os
import sys
from pathlib import Path

from distgnn.system.jobs.own_rank import forget_parent

__version__ = "0.1.0"

# In a checkout, `partition`, `kernels` and `datasets` stand beside this folder: let `distgnn.kernels` find them.
_root = Path(__file__).resolve().parent.parent
if (_root / "pyproject.toml").is_file():
    __path__.append(str(_root))
del _root

# torch reads these once, when it is loaded: see distgnn.system.launch.torch_environment. A user's own choice stays.
_torch_spins = "torch" in sys.modules and not {"GOMP_SPINCOUNT", "OMP_WAIT_POLICY"} & set(os.environ)  # `load` says so
if "torch" not in sys.modules:
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", "1000")
    os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")

# A process that a rank has started is no rank; a rank has its end seen to from its first import on.
forget_parent()

_PLACES = {
    "DistGraph": "distgnn.graph.dist_graph",
    "load": "distgnn.graph.loader",
    "launch": "distgnn.system.calls.launch",
    "fit": "distgnn.fitting.fit",
    "FitResult": "distgnn.fitting.result",
    "load_result": "distgnn.fitting.result",
    "Trainer": "distgnn.train",
    "TrainResult": "distgnn.train",
    "Callback": "distgnn.train",
    "TrainConfig": "distgnn.config",
    "training_subgraph": "distgnn.graph.induced",
    "DistributedOptimizer": "distgnn.graph.own_loop",
    "negative_edges": "distgnn.graph.links.negatives",
    "broadcast_parameters": "distgnn.graph.own_loop",
    "sum_gradients": "distgnn.graph.own_loop",
    "watchdog": "distgnn.comm.ending.loop_watch",
    "ModelConfig": "distgnn.config",
    "CutConfig": "distgnn.config",
    "to_dgl": "distgnn.interop.dgl.export",
    "to_pyg": "distgnn.interop.pyg.export",
    "GraphData": "distgnn.datasets",
    "load_graph": "distgnn.datasets",
    "renumber": "distgnn.datasets",
    "check_graph": "distgnn.datasets",
    "partition_graph": "distgnn.partition",
    "DistGNNError": "distgnn.errors",
    "import_dgl": "distgnn.interop.dgl.import_dgl",
}
_MODULES = ("comm", "datasets", "kernels", "nn", "ops", "partition", "train")

__all__ = [*_PLACES, *_MODULES, "__version__"]


def __getattr__(name: str) -> object:
    if name in _PLACES:
        return getattr(importlib.import_module(_PLACES[name]), name)
    if name in _MODULES:
        return importlib.import_module(f"distgnn.{name}")
    raise AttributeError(f"module 'distgnn' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
