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
from typing import TYPE_CHECKING

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


# In a user's script, files are those that one process writes: before the script goes on.
def _keep_copies() -> None:
    from distgnn.system.scripts.own_copies import keep_copies

    keep_copies()


if "DISTGNN_FILES" in os.environ:
    _keep_copies()

if TYPE_CHECKING:  # what `__getattr__` gives, for type checkers and editors
    from distgnn import comm as comm
    from distgnn import datasets as datasets
    from distgnn import kernels as kernels
    from distgnn import nn as nn
    from distgnn import ops as ops
    from distgnn import partition as partition
    from distgnn import train as train
    from distgnn.bench.study import study as study
    from distgnn.comm.ending.loop_watch import watchdog as watchdog
    from distgnn.config import CutConfig as CutConfig
    from distgnn.config import ModelConfig as ModelConfig
    from distgnn.config import TrainConfig as TrainConfig
    from distgnn.datasets import GraphData as GraphData
    from distgnn.datasets import check_graph as check_graph
    from distgnn.datasets import load_graph as load_graph
    from distgnn.datasets import renumber as renumber
    from distgnn.errors import DistGNNError as DistGNNError
    from distgnn.fitting.fit import fit as fit
    from distgnn.fitting.live_plot import LivePlot as LivePlot
    from distgnn.fitting.result import FitResult as FitResult
    from distgnn.fitting.result import load_result as load_result
    from distgnn.graph.dist_graph import DistGraph as DistGraph
    from distgnn.graph.edge_pairs import negative_edges as negative_edges
    from distgnn.graph.induced import training_subgraph as training_subgraph
    from distgnn.graph.loader import init as init
    from distgnn.graph.loader import load as load
    from distgnn.ops.own_loop import DistributedOptimizer as DistributedOptimizer
    from distgnn.ops.own_loop import broadcast_parameters as broadcast_parameters
    from distgnn.ops.own_loop import sum_gradients as sum_gradients
    from distgnn.partition import partition_graph as partition_graph
    from distgnn.predicting.predict import predict as predict
    from distgnn.system.calls.launch import launch as launch
    from distgnn.system.other_libraries import import_dgl as import_dgl
    from distgnn.train import Callback as Callback
    from distgnn.train import Trainer as Trainer
    from distgnn.train import TrainResult as TrainResult
    from distgnn.train.export.dgl import to_dgl as to_dgl
    from distgnn.train.export.pyg import to_pyg as to_pyg

_PLACES = {
    "DistGraph": "distgnn.graph.dist_graph",
    "init": "distgnn.graph.loader",
    "load": "distgnn.graph.loader",
    "launch": "distgnn.system.calls.launch",
    "fit": "distgnn.fitting.fit",
    "FitResult": "distgnn.fitting.result",
    "LivePlot": "distgnn.fitting.live_plot",
    "load_result": "distgnn.fitting.result",
    "predict": "distgnn.predicting.predict",
    "study": "distgnn.bench.study",
    "Trainer": "distgnn.train",
    "TrainResult": "distgnn.train",
    "Callback": "distgnn.train",
    "TrainConfig": "distgnn.config",
    "training_subgraph": "distgnn.graph.induced",
    "DistributedOptimizer": "distgnn.ops.own_loop",
    "negative_edges": "distgnn.graph.edge_pairs",
    "broadcast_parameters": "distgnn.ops.own_loop",
    "sum_gradients": "distgnn.ops.own_loop",
    "watchdog": "distgnn.comm.ending.loop_watch",
    "ModelConfig": "distgnn.config",
    "CutConfig": "distgnn.config",
    "to_dgl": "distgnn.train.export.dgl",
    "to_pyg": "distgnn.train.export.pyg",
    "GraphData": "distgnn.datasets",
    "load_graph": "distgnn.datasets",
    "renumber": "distgnn.datasets",
    "check_graph": "distgnn.datasets",
    "partition_graph": "distgnn.partition",
    "DistGNNError": "distgnn.errors",
    "import_dgl": "distgnn.system.other_libraries",
}
_MODULES = ("comm", "datasets", "kernels", "nn", "ops", "partition", "train")

__all__ = [*_PLACES, *_MODULES, "__version__"]


def __getattr__(name: str) -> object:
    try:
        if name in _PLACES:
            return getattr(importlib.import_module(_PLACES[name]), name)
        if name in _MODULES:
            return importlib.import_module(f"distgnn.{name}")
    except (ImportError, RuntimeError, OSError):
        _without_mpi()
        raise
    raise AttributeError(f"module 'distgnn' has no attribute {name!r}")


def _without_mpi() -> None:
    """Raises: RunError, one line, where no MPI library can be loaded."""
    if "mpi4py.MPI" not in sys.modules:
        from distgnn.errors import RunError
        from distgnn.system.launch import import_mpi

        try:
            import_mpi()
        except RunError as error:
            raise error from None


def __dir__() -> list[str]:
    return sorted(__all__)
