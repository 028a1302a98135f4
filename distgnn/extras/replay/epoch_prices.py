"""What an arc, a dense row and an exchanged row cost on these ranks: the prices of planned epochs.

Real epochs of a small GraphSAGE are trained on a generated graph whose edges were dealt at random, so that every rank
has as much of everything as the others; what each part of the epoch took is divided by what there was of it.

"""

import platform
import statistics
import time
from typing import Any

import numpy as np

from distgnn.config import ModelConfig, TrainConfig, num_threads
from distgnn.datasets import load_graph
from distgnn.graph.dist_graph import DistGraph
from distgnn.graph.loader import use_threads
from distgnn.nn import model_for
from distgnn.partition import cut_edges, local_part
from distgnn.train.trainer import Trainer

GRAPH = "rmat:scale=15,edge_factor=8,feats={width},classes=16,seed=0"
UNCOUNTED_EPOCHS = 2
LEAST_EPOCHS = 5


def measure_prices(comm: Any, seconds: float, width: int, num_layers: int) -> dict[str, Any]:
    """The contents of a file of prices, without its version.

    Collective: yes; all ranks train together for about `seconds`.

    Args: width, num_layers: of the model whose epochs are to be predicted.
    Notes: seconds waited for rows count as exchange; an epoch's rest (products, element-wise work, loss, optimiser) as
        dense. The median epoch of each, the mean over ranks.
    """
    use_threads(num_threads())
    data = load_graph(GRAPH.format(width=width))
    edges = data.edge_list("both")
    local = local_part(data, edges, cut_edges(edges, comm.size, "random"), comm.rank)
    dist = DistGraph(local, comm)
    model = model_for(ModelConfig("sage", hidden_feats=width, num_layers=num_layers), dist)
    trainer = Trainer(model, dist, TrainConfig(epochs=1))
    # Median seconds of an epoch that this rank aggregates, computes on rows, and exchanges them
    counters = trainer.graph.transport.counters
    costs: list[tuple[float, float, float]] = []
    began = time.perf_counter()
    while len(costs) < UNCOUNTED_EPOCHS + LEAST_EPOCHS or comm.bcast(time.perf_counter() - began < seconds):
        before = counters.copy()
        epoch = trainer.train_epoch(len(costs))
        mine = counters.since(before)
        exchange = mine["wait_seconds"] + mine["pack_seconds"]
        rest = epoch["seconds"] - exchange - mine["aggregate_seconds"] - mine["all_reduce_seconds"]
        costs.append((mine["aggregate_seconds"], max(rest, 0.0), exchange))
    spent = [statistics.median(column) for column in zip(*costs[UNCOUNTED_EPOCHS:], strict=True)]
    plan = local.plan
    sent = len(plan.broadcast_rows) + len(plan.reduce_rows)
    received = plan.num_source_halos + plan.num_target_halos
    again = num_layers - 1
    loads = again * local.num_arcs * width, num_layers * local.num_owned, again * (sent + received)
    names = ("seconds_per_arc_value", "seconds_per_dense_row", "seconds_per_exchanged_row")
    of_ranks = comm.allgather([one / load for one, load in zip(spent, loads, strict=True)])
    prices = {name: float(np.mean(values)) for name, values in zip(names, zip(*of_ranks, strict=True), strict=True)}
    hosts = sorted(set(comm.allgather(platform.node())))
    where = {"ranks": comm.size, "threads": num_threads(), "hosts": hosts, "model": "sage", "graph": GRAPH}
    return {"width": width, "num_layers": num_layers} | prices | where
