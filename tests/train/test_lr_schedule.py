"""Learning-rate schedules: their rates, torch's where torch has them; and early stopping."""

import json

import pytest
import torch
from cut_graphs import random_graph, whole_graph
from trainers import trainer_of

from distgnn.config import TrainConfig
from distgnn.train.lr_schedule import EarlyStopping, rate_of


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
    trainer = trainer_of(whole_graph(random_graph(1)), epochs=40, lr=0.1, lr_schedule="wsd")
    assert trainer.optimizer.lr == pytest.approx(0.1 / 4)


@pytest.mark.parametrize("stopped_after", range(1, 29, 3))
def test_stopping_goes_on_where_a_checkpoint_was_written(stopped_after):
    values = [0.1, 0.5] + [0.4] * 5 + [0.6] + [0.5] * 20

    def go_on(stopping: EarlyStopping, epochs) -> list[tuple[bool, bool]]:
        return [(stopping.is_best(epoch, values[epoch]), stopping.should_stop()) for epoch in epochs]

    whole = go_on(EarlyStopping(7), range(28))
    first, second = EarlyStopping(7), EarlyStopping(7)
    go_on(first, range(stopped_after))
    second.load_state(json.loads(json.dumps(first.state())))
    assert go_on(second, range(stopped_after, 28)) == whole[stopped_after:]


def test_early_stopping_counts_evaluations():
    stopping = EarlyStopping(patience=2)
    values = [0.5, 0.8, 0.6, 0.7, 0.69, 0.6]  # means of three: 0.5, 0.65, 0.63, 0.7, 0.66, 0.66
    found = [(stopping.is_best(epoch, value), stopping.should_stop()) for epoch, value in enumerate(values)]
    assert [best for best, _ in found] == [True, True, False, False, False, False]
    assert [stop for _, stop in found] == [False] * 5 + [True]  # the single value of epoch 1 does not count
    assert stopping.best_epoch == 1
    still = EarlyStopping(patience=2)  # a tie is not better
    assert [still.is_best(epoch, 0.5) or still.should_stop() for epoch in range(3)] == [True, False, True]
    assert still.best_epoch == 0
