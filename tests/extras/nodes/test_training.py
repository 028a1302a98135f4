"""Training by nodes: losses of plain messages to rounding, the same bits again; and what it does not go with."""

import pytest
import torch
from cut_graphs import dist_graph, random_graph

from distgnn.config import ModelConfig, Settings, TrainConfig
from distgnn.errors import InputError
from distgnn.nn import build_model
from distgnn.train import Trainer

CASES = {"sage": ModelConfig("sage", 8, 3), "gat": ModelConfig("gat", 8, 2)}


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
    by_node = losses(comm, CASES[name], ranks_per_node=2)
    assert by_node == pytest.approx(losses(comm, CASES[name]), rel=1e-9)  # float64 sums in another order, and Adam
    assert by_node == losses(comm, CASES[name], ranks_per_node=2)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"algorithm": "cd-2"}, "--ranks-per-node is for exact rows"),
        ({"wire": "int8"}, "--ranks-per-node is for exact rows"),
        ({"offload": "DIR"}, "rows of --offload travel in pieces"),
    ],
)
def test_what_goes_by_plain_messages_only_is_refused(options, says):
    with pytest.raises(InputError, match=says):
        Settings().with_options({"ranks_per_node": 2} | options).checked()
