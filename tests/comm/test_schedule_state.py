"""The state of a schedule: going on after it, and from it, gives the same bits under every option."""

import pytest
import torch
from cut_graphs import dist_graph, random_graph

from distgnn.config import ModelConfig, TrainConfig
from distgnn.nn import build_model
from distgnn.train import Trainer

OPTIONS = {
    "cd-3 int8": {"algorithm": "cd-3", "wire": "int8"},
    "late_row_average": {"algorithm": "cd-2", "late_row_average": 0.9},
    "cd-0 int4": {"algorithm": "cd-0", "wire": "int4"},
    "cd-0": {"algorithm": "cd-0"},
}


def trainer_of(comm, options) -> Trainer:
    graph = dist_graph(random_graph(1), comm, dtype="float32", **options)
    torch.manual_seed(0)
    model = build_model(ModelConfig(hidden_feats=8), graph.num_feats, graph.num_classes)
    return Trainer(model, graph, TrainConfig(epochs=1))


def losses(trainer: Trainer, epochs: range) -> list[float]:
    return [trainer.train_epoch(epoch)["loss"] for epoch in epochs]


def copy_weights(there: Trainer, here: Trainer) -> None:
    """Weights and optimiser, as a checkpoint has them."""
    here.model.load_state_dict(there.model.state_dict())
    for name in ("means", "squares", "steps"):
        for one, other in zip(getattr(here.optimizer, name), getattr(there.optimizer, name), strict=True):
            one.copy_(other)


@pytest.mark.mpi(2)
@pytest.mark.parametrize("name", OPTIONS)
def test_going_on_gives_the_same_bits(comm, name):
    whole, cut = trainer_of(comm, dict(OPTIONS[name])), trainer_of(comm, dict(OPTIONS[name]))
    expected = losses(whole, range(12))
    assert losses(cut, range(6)) == expected[:6]
    state = cut.graph.exchanges.state_dict()
    assert bool(state) == (name != "cd-0")
    resumed = trainer_of(comm, dict(OPTIONS[name]))
    copy_weights(cut, resumed)
    assert losses(cut, range(6, 12)) == expected[6:]  # the first run goes on; what was saved is a copy and stays
    resumed.graph.exchanges.load_state_dict(state)
    assert losses(resumed, range(6, 12)) == expected[6:]
    for trainer in (whole, cut, resumed):
        trainer.graph.drain()


@pytest.mark.mpi(3)
def test_a_refill_is_a_synchronous_epoch(comm):
    exact, late = trainer_of(comm, {}), trainer_of(comm, {"algorithm": "cd-2"})
    losses(late, range(7))
    copy_weights(late, exact)
    late.graph.exchanges.refill(7)
    resumed = trainer_of(comm, {"algorithm": "cd-2"})
    state = late.graph.exchanges.state_dict()
    resumed.graph.exchanges.load_state_dict(state)  # it knows that the refill is still to come
    copy_weights(late, resumed)
    refilled = losses(late, range(7, 8))
    assert refilled == losses(resumed, range(7, 8))
    near = {"rel": 1e-6}  # float32 sums in another order: what a rank aggregates before rows arrive
    assert refilled == pytest.approx(losses(exact, range(7, 8)), **near)
    copy_weights(late, exact)
    assert losses(late, range(8, 9)) != pytest.approx(losses(exact, range(8, 9)), **near)
    late.graph.drain()
    resumed.graph.drain()


@pytest.mark.mpi(2)
def test_the_state_of_other_settings_is_refused(comm):
    late = trainer_of(comm, {"algorithm": "cd-2"})
    losses(late, range(3))
    state = late.graph.exchanges.state_dict()
    for options in ({"algorithm": "cd-3"}, {"algorithm": "cd-2", "wire": "int8"}):
        with pytest.raises(ValueError, match=r"(pending\.\d|held) of broadcast 1 is .* same partition and settings"):
            trainer_of(comm, options).graph.exchanges.load_state_dict(state)
    with pytest.raises(ValueError, match="the state has held rows, cd-0 does not"):
        trainer_of(comm, {}).graph.exchanges.load_state_dict(state)
    with pytest.raises(ValueError, match="the state lacks held rows, cd-2 does not"):
        trainer_of(comm, {"algorithm": "cd-2"}).graph.exchanges.load_state_dict({})
