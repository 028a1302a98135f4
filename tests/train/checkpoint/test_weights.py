"""The best weights of a run are those of its trainer; another model's are refused by name."""

import pytest
import torch
from cut_graphs import random_graph, whole_graph
from trainers import trainer_of

from distgnn.config import ModelConfig
from distgnn.errors import RunError
from distgnn.train import load_best


def test_the_best_weights_come_back_and_another_model_is_refused(tmp_path):
    graph = whole_graph(random_graph(1))
    trained = trainer_of(graph, epochs=2, run_dir=str(tmp_path / "run"))
    trained.fit()
    fresh, wide = (trainer_of(graph, ModelConfig("sage", width)).model for width in (8, 16))
    with torch.no_grad():
        next(fresh.parameters()).zero_()
    load_best(str(tmp_path / "run"), fresh)
    for one, other in zip(fresh.parameters(), trained.model.parameters(), strict=True):
        assert torch.equal(one, other)
    with pytest.raises(RunError, match=r"does not fit the model: convs\.0\.fc_neigh\.weight is"):
        load_best(str(tmp_path / "run"), wide)
    with pytest.raises(RunError, match="has no weights"):
        load_best(str(tmp_path), fresh)
