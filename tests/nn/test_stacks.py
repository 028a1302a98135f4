"""Every model by name trains on P ranks as on one: losses with dropout, norms and Adam."""

import numpy as np
import pytest
import torch
from cut_graphs import dist_graph, gather_rows, random_graph, whole_graph

from distgnn.config import EDGE_MODELS, MODELS, ModelConfig, TrainConfig
from distgnn.datasets import load_graph
from distgnn.errors import InputError
from distgnn.nn import build_model, model_for
from distgnn.train import Trainer

VARIANTS = [ModelConfig(name) for name in MODELS]
VARIANTS += [ModelConfig("gin", norm="batch"), ModelConfig("gat", norm="pair", residual=True, jump="cat")]
VARIANTS += [ModelConfig("gcn", norm="graph", residual=True), ModelConfig("sage", norm="none", jump="max")]
VARIANTS += [ModelConfig("gcn2", norm="batch", num_layers=8), ModelConfig("appnp", norm="none")]


def label(config: ModelConfig) -> str:
    extras = [config.jump] * (config.jump != "none") + ["residual"] * config.residual
    return "-".join([config.name, config.norm, *extras])


def train(graph, config: ModelConfig, epochs: int):
    torch.manual_seed(0)
    network = model_for(config, graph)
    trainer = Trainer(network, graph, TrainConfig(epochs=epochs, eval_every=4))
    result = trainer.fit()
    return result, gather_rows(graph, trainer.predict())


@pytest.mark.mpi(3)
@pytest.mark.parametrize("config", VARIANTS, ids=label)
def test_training_does_not_depend_on_ranks(comm, config):
    config.hidden_feats = 8
    typed = config.name in (*EDGE_MODELS, "rgcn")
    data = random_graph(3, weighted=config.name in ("gcn", "gat"), typed=typed)
    config.weighted = data.edge_weight is not None
    many, logits = train(dist_graph(data, comm), config, epochs=4)
    one, expected = train(whole_graph(data), config, epochs=4)
    np.testing.assert_allclose(many.losses, one.losses, rtol=1e-8)  # 4 Adam steps of float64 sums in another order
    np.testing.assert_allclose(logits, expected, rtol=1e-5, atol=1e-7)


@pytest.mark.slow
@pytest.mark.mpi(2)
def test_a_model_learns_cora(comm, data_root):
    """One of them: tests/nn/test_plain_model.py has the gradients of each."""
    data = load_graph("cora", data_root)
    config = ModelConfig("gat", hidden_feats=64, num_layers=2)
    result, _ = train(dist_graph(data, comm, dtype="float32", self_loops="add"), config, epochs=60)
    assert result.summary["test_metric"] > 0.75  # published accuracies of these models lie between 0.78 and 0.85


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"name": "gat", "hidden_feats": 30}, "multiple of num_heads"),
        ({"name": "gatv2", "weighted": True}, "gatv2 takes no edge weights"),
        ({"name": "appnp", "residual": True}, "leave residual and jump out"),
        ({"name": "sage", "jump": "lstm"}, "unknown jump 'lstm': choose from none, cat, max"),
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
