"""Models by name: one learns, and settings that none can have are refused."""

import pytest
import torch
from cut_graphs import dist_graph, random_graph

from distgnn.config import ModelConfig, TrainConfig
from distgnn.datasets import load_graph
from distgnn.errors import InputError
from distgnn.nn import build_model, model_for
from distgnn.train import Trainer


@pytest.mark.slow
@pytest.mark.mpi(2)
def test_a_model_learns_cora(comm, data_root):
    """One of them: test_plain_model.py has the gradients of each on ranks, test_random_cases.py whole trainings."""
    data = load_graph("cora", data_root)
    config = ModelConfig("gat", hidden_feats=64, num_layers=2)
    graph = dist_graph(data, comm, dtype="float32", self_loops="add")
    torch.manual_seed(0)
    result = Trainer(model_for(config, graph), graph, TrainConfig(epochs=60, eval_every=4)).fit()
    assert result.summary["test_metric"] > 0.75  # published accuracies of these models lie between 0.78 and 0.85


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"name": "gat", "hidden_feats": 30}, "multiple of num_heads"),
        ({"name": "gatv2", "weighted": True}, "gatv2 takes no edge weights"),
        ({"name": "appnp", "block": "residual"}, "leave block, stem, head and input_dropout out"),
        ({"name": "sage", "head": "lstm"}, "unknown head 'lstm': choose from conv, linear, cat, max"),
        ({"name": "sage", "residual": "identity"}, "--residual is of --block residual: add it"),
        ({"name": "gin", "input_dropout": 1.0}, "input_dropout is 1.0: expected a probability from 0"),
        ({"name": "sage", "norm": "instance"}, "unknown norm 'instance'"),
        ({"name": "gat", "num_heads": 0}, "num_heads is 0"),
    ],
)
def test_settings_that_no_model_can_have_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        build_model(ModelConfig(**settings), 5, 3)


@pytest.mark.mpi(2)
@pytest.mark.parametrize("wires", [{"wire": "int8"}, {"wire_backward": "bfloat16"}], ids=str)
def test_rematerialisation_refuses_narrow_wires(comm, wires):
    """The layer is run again: a second exchange would be rounded with other draws."""
    graph = dist_graph(random_graph(3), comm, dtype="float32", **wires)
    network = model_for(ModelConfig("gat", 8, remat=True), graph)
    with pytest.raises(ValueError, match="remat repeats exchanges: it needs algorithm cd-0 and float32 on the wire"):
        network(graph, graph.feats)


def test_a_graph_without_labels_is_said_before_torch_warns():
    with pytest.raises(InputError, match="num_classes is 0: the graph has no labels"):
        build_model(ModelConfig(), 3, 0)
