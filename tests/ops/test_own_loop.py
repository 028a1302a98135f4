"""A training loop of one's own takes the same steps as the Trainer, on any number of ranks, or is refused."""

import numpy as np
import pytest
import torch
from cut_graphs import dist_graph, random_graph, whole_graph
from torch.nn import functional as F

from distgnn.config import ModelConfig, TrainConfig
from distgnn.errors import InputError, RunError
from distgnn.graph.global_values import gather_rows, global_mean
from distgnn.nn import GraphConv, build_model
from distgnn.ops import all_sum
from distgnn.ops.own_loop import DistributedOptimizer, broadcast_parameters, sum_gradients
from distgnn.train import Trainer

EPOCHS = 12


def make_model(graph, seed: int = 0):
    torch.manual_seed(seed)
    return build_model(ModelConfig(hidden_feats=8), graph.num_feats, graph.num_classes).to(graph.weight_dtype)


def step_loss(model, graph) -> torch.Tensor:
    logits = model(graph, graph.feats)[graph.train_mask]
    return global_mean(graph, F.cross_entropy(logits, graph.labels[graph.train_mask], reduction="none"))


def own_loop(graph, make_optimizer, epochs: int = EPOCHS, clip_grad: float | None = None) -> list[float]:
    model = make_model(graph)
    optimizer = DistributedOptimizer(make_optimizer(model.parameters()), graph, clip_grad)
    losses = []
    for graph.step in range(epochs):
        optimizer.zero_grad()
        loss = step_loss(model, graph)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def adam(parameters):
    return torch.optim.Adam(parameters, lr=0.01)


@pytest.mark.mpi(3)
def test_losses_are_those_of_the_trainer(comm):
    data = random_graph(5)
    trainer = Trainer(make_model(whole := whole_graph(data)), whole, TrainConfig(epochs=EPOCHS, lr=0.01))
    np.testing.assert_allclose(own_loop(dist_graph(data, comm), adam), trainer.fit().losses, rtol=1e-10)


@pytest.mark.mpi(3)
@pytest.mark.parametrize("kind", ["sgd with momentum", "adamw of two groups", "lbfgs"])
def test_any_optimizer_of_torch(comm, kind):
    def make(parameters):
        first, *others = parameters
        if kind == "sgd with momentum":
            return torch.optim.SGD([first, *others], lr=0.1, momentum=0.9)
        return torch.optim.AdamW([{"params": [first]}, {"params": others, "lr": 0.02}], lr=0.01)

    data = random_graph(6)
    if kind == "lbfgs":
        found, expected = lbfgs_loop(dist_graph(data, comm)), lbfgs_loop(whole_graph(data))
    else:
        found, expected = own_loop(dist_graph(data, comm), make), own_loop(whole_graph(data), make)
    np.testing.assert_allclose(found, expected, rtol=1e-8)
    assert found[-1] < found[0]


def lbfgs_loop(graph) -> list[float]:
    model = make_model(graph)
    model.eval()  # LBFGS evaluates a step several times: the same masks each time
    optimizer = DistributedOptimizer(torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=3), graph)

    def closure():
        optimizer.zero_grad()
        loss = step_loss(model, graph)
        loss.backward()
        return loss

    return [optimizer.step(closure).item() for _ in range(4)]


class Own(torch.nn.Module):
    """A user's model."""

    def __init__(self, in_feats: int, out_feats: int):
        super().__init__()
        self.conv = GraphConv(in_feats, out_feats, allow_zero_in_degree=True)

    def forward(self, graph, feats):
        return self.conv(graph, feats)


@pytest.mark.mpi(2)
@pytest.mark.filterwarnings("ignore")  # of torch's compiler
@pytest.mark.parametrize("kind", ["a stack", "one's own, compiled"])
def test_a_step_on_unsummed_gradients_is_refused(comm, kind):
    graph = dist_graph(random_graph(7), comm)
    model = make_model(graph)
    if kind != "a stack":
        model = Own(graph.num_feats, graph.num_classes).to(graph.weight_dtype)
        model.compile(backend="eager")
    before = [parameter.detach().clone() for parameter in model.parameters()]
    optimizer = adam(model.parameters())
    step_loss(model, graph).backward()
    with pytest.raises(RunError, match=r"not summed over the 2 ranks.*DistributedOptimizer.*sum_gradients"):
        optimizer.step()
    assert all(torch.equal(now, then) for now, then in zip(model.parameters(), before, strict=True))
    sum_gradients(model, graph)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # after the sum: allowed
    optimizer.step()
    step_loss(model, graph).backward()
    with pytest.raises(RunError, match="not summed"):  # each step anew
        optimizer.step()


def clipped_by_hand(graph) -> list[float]:
    """Gradients are summed, clipped, and not summed again by the step."""
    model = make_model(graph)
    optimizer = DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.5), graph)
    found = []
    for graph.step in range(4):
        optimizer.zero_grad()
        loss = step_loss(model, graph)
        loss.backward()
        sum_gradients(model, graph)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        optimizer.step()
        found.append(loss.item())
    return found


@pytest.mark.mpi(3)
def test_gradients_are_clipped_after_the_sum(comm):
    data = random_graph(12)
    config = TrainConfig(epochs=4, lr=0.5, clip_grad=0.1)
    trainer = Trainer(make_model(whole := whole_graph(data)), whole, config, optimizer=torch.optim.SGD)
    expected = trainer.fit().losses
    by_step = own_loop(dist_graph(data, comm), lambda given: torch.optim.SGD(given, lr=0.5), 4, clip_grad=0.1)
    np.testing.assert_allclose(by_step, expected, rtol=1e-10)
    by_hand = clipped_by_hand(dist_graph(data, comm))
    np.testing.assert_allclose(by_hand, clipped_by_hand(whole_graph(data)), rtol=1e-10)
    with pytest.raises(InputError, match="clip_grad is 0: expected a norm above 0"):
        DistributedOptimizer(adam(make_model(whole).parameters()), whole, clip_grad=0)


@pytest.mark.mpi(2)
@pytest.mark.parametrize("how", ["the step", "sum_gradients"])
def test_clipping_before_the_sum_is_refused(comm, how):
    graph = dist_graph(random_graph(12), comm)
    model = make_model(graph)
    optimizer = DistributedOptimizer(adam(model.parameters()), graph)
    for _ in range(2):  # adding two gradients up is no change
        step_loss(model, graph).backward()
    optimizer.step()
    optimizer.zero_grad()
    step_loss(model, graph).backward()
    if comm.rank == 1:  # one rank's mistake is every rank's error
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
    with pytest.raises(RunError, match=r"changed \(clipped\?\).*clip_grad=1.0.*sum_gradients"):
        optimizer.step() if how == "the step" else sum_gradients(model, graph)


@pytest.mark.mpi(1, 2)
@pytest.mark.parametrize("form", ["own mean", "share", "sum of shares"])
def test_a_loss_of_one_ranks_rows_is_warned_of_once(comm, form):
    graph = dist_graph(random_graph(12), comm)
    model = make_model(graph)
    optimizer = DistributedOptimizer(adam(model.parameters()), graph)

    def step():
        optimizer.zero_grad()
        logits = model(graph, graph.feats)[graph.train_mask]
        loss = F.cross_entropy(logits, graph.labels[graph.train_mask], reduction="sum")
        if form == "own mean":
            loss = loss / len(logits)
        else:
            loss = loss / graph.num_labelled("train") if form == "share" else all_sum(graph, loss)
        loss.backward()
        optimizer.step()

    if form == "own mean" and comm.size > 1 and comm.rank == 0:
        with pytest.warns(UserWarning, match=r"this rank's rows only.*graph\.global_mean"):
            step()
    else:
        step()
    step()  # warnings are errors


@pytest.mark.mpi(1, 2)
def test_other_models_and_a_single_rank_may_step(comm):
    graph = dist_graph(random_graph(7), comm)
    alone = torch.nn.Linear(3, 2)
    alone(torch.ones(4, 3)).sum().backward()
    adam(alone.parameters()).step()
    if comm.size == 1:
        model = make_model(graph)
        step_loss(model, graph).backward()
        adam(model.parameters()).step()


@pytest.mark.mpi(3)
def test_parameters_start_equal(comm):
    graph = dist_graph(random_graph(8), comm)
    model, other = make_model(graph, seed=comm.rank), make_model(graph, seed=comm.rank)
    broadcast_parameters(model, graph)
    DistributedOptimizer(adam(other.parameters()), graph)
    rank_0 = make_model(graph, seed=0)
    for found in (model, other):
        assert all(torch.equal(a, b) for a, b in zip(found.parameters(), rank_0.parameters(), strict=True))


@pytest.mark.mpi(2)
def test_a_scheduler_drives_it_and_its_state_can_be_loaded(comm):
    graph = dist_graph(random_graph(9), comm)
    model = make_model(graph)
    optimizer = DistributedOptimizer(adam(model.parameters()), graph)
    assert isinstance(optimizer, torch.optim.Adam)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5)
    step_loss(model, graph).backward()
    optimizer.step()
    scheduler.step()
    assert optimizer.param_groups[0]["lr"] == 0.005
    again = DistributedOptimizer(adam(model.parameters()), graph)
    again.load_state_dict(optimizer.state_dict())
    assert again.param_groups[0]["lr"] == 0.005
    with pytest.raises(TypeError, match="made already"):
        DistributedOptimizer(torch.optim.Adam, graph)


@pytest.mark.mpi(3)
def test_global_mean_counts_values_not_ranks(comm):
    graph = dist_graph(random_graph(10), comm)
    values = torch.arange(comm.rank * 2, dtype=torch.float64, requires_grad=True)  # rank 0 has none
    mean = global_mean(graph, values)
    everything = np.concatenate([np.arange(rank * 2) for rank in range(comm.size)])
    assert mean.item() == pytest.approx(everything.mean() if len(everything) else 0.0)
    mean.backward()
    assert torch.equal(values.grad, torch.full_like(values, 1 / max(len(everything), 1)))


@pytest.mark.mpi(3)
@pytest.mark.parametrize("root", [0, None])
def test_rows_come_back_in_the_original_order(comm, root):
    graph = dist_graph(random_graph(11), comm)
    rows = torch.from_numpy(np.stack([graph.row_ids, -graph.row_ids], axis=1))
    rows[graph.num_owned :] = 0  # halo copies are left out
    found = gather_rows(graph, rows, root)
    if root is None or comm.rank == root:
        ids = np.arange(graph.num_global_nodes)
        assert np.array_equal(found, np.stack([ids, -ids], axis=1))
    else:
        assert found is None
