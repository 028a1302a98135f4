"""Models by name: settings that none can have are refused."""

import pytest
from cut_graphs import dist_graph, random_graph

from distgnn.config import ModelConfig
from distgnn.errors import InputError
from distgnn.nn import build_model, model_for


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"name": "gat", "hidden_feats": 30}, "multiple of num_heads"),
        ({"name": "gatv2", "weighted": True}, "gatv2 takes no edge weights"),
        ({"name": "appnp", "block": "residual"}, "leave block, stem and head out"),
        ({"name": "sage", "head": "lstm"}, "unknown head 'lstm': choose from conv, linear, cat, max"),
        ({"name": "sage", "residual": "identity"}, "residual is of --block residual: add it"),
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
