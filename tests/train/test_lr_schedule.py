"""Learning-rate schedules: their rates, torch's where torch has them."""

import pytest
import torch
from cut_graphs import random_graph, whole_graph

from distgnn.config import ModelConfig, TrainConfig
from distgnn.nn import build_model
from distgnn.train import Trainer
from distgnn.train.lr_schedule import rate_of


def rates_of(schedule: str, epochs: int) -> list[float]:
    """The rate of each epoch."""
    config = TrainConfig(lr=1.0, epochs=epochs, lr_schedule=schedule)
    return [rate_of(config, epoch) for epoch in range(epochs)]


def test_cosine_ends_at_zero():
    config = TrainConfig(epochs=4, lr=1.0, lr_schedule="cosine")
    found = [rate_of(config, epoch) for epoch in range(1, 5)]
    assert found == pytest.approx([0.853553, 0.5, 0.146447, 0], abs=1e-6)


@pytest.mark.parametrize("epochs", [2, 4, 10, 37])
def test_one_cycle_is_torchs(epochs):
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    torchs = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1.0, total_steps=epochs, cycle_momentum=False)
    expected = []
    for _ in range(epochs):
        expected.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        torchs.step() if len(expected) < epochs else None
    assert rates_of("one-cycle", epochs) == pytest.approx(expected, rel=1e-12)


def test_wsd_warms_up_stays_and_decays():
    assert rates_of("wsd", 20) == pytest.approx([0.5] + [1.0] * 15 + [1.0, 0.75, 0.5, 0.25])


@pytest.mark.parametrize("schedule", ["cosine", "one-cycle", "wsd"])
@pytest.mark.parametrize("epochs", [1, 2, 3, 7])
def test_rates_are_positive_up_to_the_given_one(schedule, epochs):
    """Also in runs that are shorter than a warm-up; after the last epoch nothing rises again."""
    rates = rates_of(schedule, epochs)
    assert all(0 < rate <= 1 for rate in rates)
    over = TrainConfig(lr=1.0, epochs=epochs, lr_schedule=schedule)
    assert rate_of(over, epochs + 4) == pytest.approx(0, abs=1e-5)


def test_the_first_epoch_has_the_first_rate():
    graph = whole_graph(random_graph(1))
    model = build_model(ModelConfig(hidden_feats=8), graph.num_feats, graph.num_classes)
    trainer = Trainer(model, graph, TrainConfig(epochs=40, lr=0.1, lr_schedule="wsd"))
    assert trainer.optimizer.lr == pytest.approx(0.1 / 4)
