"""Training with the node-aware exchange: losses of plain messages to rounding, and the same bits again."""

import pytest
import torch
from cut_graphs import dist_graph, random_graph

from distgnn.config import ModelConfig, TrainConfig
from distgnn.nn import build_model
from distgnn.train import Trainer

CASES = {
    "sage": (ModelConfig("sage", 8, 3), {}),
    "gat": (ModelConfig("gat", 8, 2), {}),
    "copies": (ModelConfig("sage", 8, 2), {"update": "copies"}),
}


def losses(comm, config: ModelConfig, **options) -> list[float]:
    """Of 4 epochs, and of an exact evaluation."""
    graph = dist_graph(random_graph(3), comm, **options)
    torch.manual_seed(0)
    model = build_model(config, graph.num_feats, graph.num_classes).to(torch.float64)
    trainer = Trainer(model, graph, TrainConfig(epochs=1))
    found = [trainer.train_epoch(epoch)["loss"] for epoch in range(4)]
    trainer.evaluate()
    graph.drain()
    return found


@pytest.mark.mpi(4)
@pytest.mark.parametrize("name", CASES)
def test_losses_are_those_of_plain_messages(comm, name):
    config, options = CASES[name]
    by_node = losses(comm, config, exchange="node", ranks_per_node=2, **options)
    flat = losses(comm, config, exchange="flat", **options)
    assert by_node == pytest.approx(flat, rel=1e-9)  # float64 sums in another order, and Adam on them
    assert by_node == losses(comm, config, exchange="node", ranks_per_node=2, **options)
