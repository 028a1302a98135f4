"""K-FAC: equal to a dense reference, the same on any number of ranks, resumed to the same bits."""

import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from cut_graphs import dist_graph, on_rank_0, random_graph, whole_graph
from torch.nn import functional as F
from trainers import resumed_to_the_bit

from distgnn import ops
from distgnn.extras.kfac.optimizer import DECAY, GROWTH, MOMENTUM, NOISE, RISE, STEP_PER_RATE, TRUST, Damping
from distgnn.train import Trainer

sys.path.append(str(Path(__file__).parent))
from kfac_trainer import losses, make


class Dense:
    """Two layers of GraphSAGE with dense matrices: (weight, rows that it multiplies, rows that it makes) of each."""

    def __init__(self, data, trainer: Trainer):
        graph = whole_graph(data)
        self.mean = ops.spmm(graph, torch.eye(graph.num_owned).double(), None, None, graph.degree_scale("in", -1))
        self.feats = torch.from_numpy(np.asarray(data.feats, np.float64))
        self.labels, self.rows = torch.from_numpy(np.asarray(data.labels)), torch.from_numpy(np.asarray(data.train))
        self.rows = self.rows[self.labels[self.rows] >= 0]
        state = {name: tensor.clone() for name, tensor in trainer.model.state_dict().items()}
        self.biases = [state[f"convs.{layer}.fc_self.bias"].requires_grad_() for layer in (0, 1)]
        names = [f"convs.{layer}.fc_{which}.weight" for layer in (0, 1) for which in ("self", "neigh")]
        self.weights = {name: state[name].T.clone().requires_grad_() for name in names}
        self.adam = torch.optim.Adam(self.biases, trainer.config.lr)
        self.velocities = {name: torch.zeros_like(weight) for name, weight in self.weights.items()}

    def products(self) -> dict:
        """Of each weight, (x, z): the plans are CONSTANT in the first layer and PRODUCT_FIRST in the second."""
        weights, found = self.weights, {}
        found["convs.0.fc_self.weight"] = self.feats, self.feats @ weights["convs.0.fc_self.weight"]
        around = self.mean @ self.feats
        found["convs.0.fc_neigh.weight"] = around, around @ weights["convs.0.fc_neigh.weight"]
        self.hidden = torch.relu(sum(z for _, z in found.values()) + self.biases[0])
        for which in ("self", "neigh"):
            name = f"convs.1.fc_{which}.weight"
            found[name] = self.hidden, self.hidden @ weights[name]
        return found

    def step(self, lr: float, damping: float, memory: dict, kept: float) -> float:
        found = self.products()
        for _, z in found.values():
            z.retain_grad()
        z = found["convs.1.fc_self.weight"][1] + self.mean @ found["convs.1.fc_neigh.weight"][1] + self.biases[1]
        loss = F.cross_entropy(z[self.rows], self.labels[self.rows])
        self.adam.zero_grad()
        loss.backward()
        directions = {}
        for name, (x, made) in found.items():
            x = x.detach()
            pair = x.T @ x / len(x), len(self.rows) * made.grad.T @ made.grad
            old = memory.get(name, pair)
            memory[name] = tuple(kept * one + (1 - kept) * new for one, new in zip(old, pair, strict=True))
            directions[name] = self.direction(memory[name], self.weights[name].grad, damping)
        eta = STEP_PER_RATE * lr
        gain = sum(float((directions[name] * weight.grad).sum()) for name, weight in self.weights.items())
        trust = min(1.0, (TRUST / (eta**2 * gain)) ** 0.5)
        assert trust < 1
        with torch.no_grad():
            for name, weight in self.weights.items():
                self.velocities[name] = MOMENTUM * self.velocities[name] + trust * directions[name]
                weight -= eta * self.velocities[name]
                weight.grad = None
        self.adam.step()
        return loss.item()

    @staticmethod
    def direction(pair, gradient, damping):
        a, g = pair
        ratio = (torch.linalg.eigvalsh(a).mean() / torch.linalg.eigvalsh(g).mean()).sqrt()
        left = torch.linalg.inv(a + ratio * damping**0.5 * torch.eye(len(a), dtype=a.dtype))
        right = torch.linalg.inv(g + damping**0.5 / ratio * torch.eye(len(g), dtype=g.dtype))
        return left @ gradient @ right


@pytest.mark.mpi(2)
def test_steps_are_those_of_dense_matrices(comm):
    data = random_graph(1)
    sizes = {"num_layers": 2, "norm": "none", "dropout": 0.0}
    trainer = make(dist_graph(data, comm), sizes=sizes, lr=0.1, kfac_every=1)
    dense, memory = Dense(data, trainer), {}
    for epoch in range(4):
        expected = dense.step(0.1, 0.003, memory, epoch / (epoch + 1))
        assert trainer.train_epoch(epoch)["loss"] == pytest.approx(expected, rel=1e-9)
    parameters = dict(trainer.model.named_parameters())
    for name, weight in dense.weights.items():
        np.testing.assert_allclose(parameters[name].detach().T, weight.detach(), rtol=1e-8, atol=1e-10)


def test_a_rising_loss_raises_the_damping_and_it_decays_to_where_it_began():
    damping = Damping(0.01)
    first = 2.0
    assert not any(damping.follow(loss) for loss in (first, 1.0, 1 + 0.99 * (RISE + NOISE * first)))
    assert damping.value == 0.01
    assert damping.follow(1.01 + RISE + NOISE * first)
    assert damping.value == 0.01 * GROWTH
    assert not damping.follow(1.02 + RISE + NOISE * first)  # the rise has counted
    assert damping.value == 0.01 * GROWTH * DECAY
    for _ in range(20):
        damping.follow(1.0)
    assert damping.value == 0.01
    assert not any(damping.follow(loss) for loss in (0.001, 0.01, 0.002))  # masks alone


@pytest.mark.mpi(2)
def test_inverses_are_made_anew_when_the_damping_is_raised(comm):
    trainer = make(dist_graph(random_graph(1), comm), kfac_every=50)
    kept = []
    for epoch in range(6):  # 0, 1 and 3 record, the next is 6
        if epoch == 5:
            trainer.optimizer.follow(0.01, 100.0)
        trainer.train_epoch(epoch)
        kept.append([inverse.clone() for inverse in trainer.optimizer.weights[1].inverses])
    assert trainer.optimizer.next_record == 6
    assert all(map(torch.equal, kept[3], kept[4]))
    assert all(float(new.trace()) < float(old.trace()) for new, old in zip(kept[5], kept[4], strict=True))


@pytest.mark.mpi(3)
@pytest.mark.parametrize("model", ["sage", "gcn", "gin", "gat", "gcn2"])
def test_many_ranks_make_the_steps_of_one(comm, model):
    data = random_graph(2)
    many = losses(make(dist_graph(data, comm), model))
    one = on_rank_0(comm, lambda: losses(make(whole_graph(data), model)))
    np.testing.assert_allclose(many, one, rtol=1e-8)  # 10 steps of inverses on sums that differ in their last bits


@pytest.mark.mpi(2)
def test_recomputed_layers_make_the_same_steps(comm):
    data = random_graph(4)
    kept, again = (losses(make(dist_graph(data, comm), sizes={"remat": remat})) for remat in (False, True))
    assert kept == again


@pytest.mark.mpi(2)
def test_a_resumed_run_is_bit_identical(comm, shared_tmp_path):
    data, options = random_graph(1), {"algorithm": "cd-2", "dtype": "bfloat16"}
    runs = resumed_to_the_bit(lambda **run: make(dist_graph(data, comm, **options), **run), shared_tmp_path, 4)
    bits = [{name: tensor.numpy().tobytes() for name, tensor in trainer.optimizer.state().items()} for trainer in runs]
    assert bits[0] == bits[1]
    assert comm.allgather(bits[0]) == [bits[0]] * comm.size
