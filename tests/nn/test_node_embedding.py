"""A table with a row for each vertex trains as nn.Embedding does in one process, on any number of ranks."""

import copy
import io

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from cut_graphs import dist_graph, random_graph
from torch import nn

from distgnn import nn as dnn
from distgnn.config import TrainConfig
from distgnn.errors import InputError
from distgnn.graph.face.row_graph import with_rows
from distgnn.ops import spmm
from distgnn.ops.own_loop import DistributedOptimizer
from distgnn.rows import RowTensor
from distgnn.train import Trainer

N, D, CLASSES = 41, 6, 4
IDS = torch.tensor([3, 5, 40, 7, 3])
OPTIMIZERS = {
    "adam": lambda weights: torch.optim.Adam(weights, lr=0.1),
    "amsgrad": lambda weights: torch.optim.AdamW(weights, lr=0.1, amsgrad=True),
    "momentum": lambda weights: torch.optim.SGD(weights, lr=0.1, momentum=0.9, weight_decay=0.01),
    "rmsprop": lambda weights: torch.optim.RMSprop(weights, lr=0.01),
    "adamax": lambda weights: torch.optim.Adamax(weights),
    "radam": lambda weights: torch.optim.RAdam(weights),
}


def face_of(comm):
    face = with_rows(dist_graph(random_graph(2, num_nodes=N, num_edges=120), comm))
    face.y = face.y.clamp(min=0)
    return face


def plain_model() -> nn.ModuleDict:
    torch.manual_seed(3)
    return nn.ModuleDict({"table": nn.Embedding(N, D), "out": nn.Linear(D, CLASSES)}).double()


def our_model(graph, kind: str) -> nn.ModuleDict:
    """With NodeEmbedding made, or by `distribute`; or the plain model, whose table is aligned with rows."""
    if kind != "made":
        return dnn.distribute(plain_model(), graph) if kind == "distribute" else plain_model()
    torch.manual_seed(3)
    return nn.ModuleDict({"table": dnn.NodeEmbedding(graph, D), "out": nn.Linear(D, CLASSES)}).double()


def step(model, labels, optimizer, by_ids: bool) -> list[float]:
    optimizer.zero_grad()
    h = model["table"](IDS) if by_ids else model["table"].weight
    loss = F.cross_entropy(model["out"](h.relu()), labels[IDS] if by_ids else labels)
    (loss + 1e-3 * model["table"].weight.pow(2).sum()).backward()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 0.05)
    optimizer.step()
    return [loss.item(), norm.item()]


def whole(rows) -> torch.Tensor:
    return (rows.whole() if isinstance(rows, RowTensor) else rows).detach()


@pytest.mark.mpi(3)
@pytest.mark.parametrize("kind", ["made", "distribute", "aligned"])
def test_steps_are_those_of_one_process(comm, kind):
    graph = face_of(comm)
    labels = graph.y.whole()
    for name, make in OPTIMIZERS.items():
        for by_ids in (False, True):
            found = []
            for model, y in ((plain_model(), labels), (our_model(graph, kind), graph.y)):
                optimizer = make(model.parameters())
                losses = [step(model, y, optimizer, by_ids) for _ in range(4)]
                found.append((losses, whole(model["table"].weight)))
            (plain, table), (ours, our_table) = found
            np.testing.assert_allclose(ours, plain, rtol=1e-9, err_msg=name)
            torch.testing.assert_close(our_table, table, rtol=1e-9, atol=1e-9, msg=name)


@pytest.mark.mpi(3)
def test_each_rank_has_its_rows_only(comm):
    graph = face_of(comm)
    model = our_model(graph, "distribute")
    optimizer = OPTIMIZERS["adam"](model.parameters())
    step(model, graph.y, optimizer, by_ids=False)
    weight = model["table"].weight
    assert isinstance(model["table"], dnn.NodeEmbedding) and isinstance(weight, nn.Parameter)
    assert weight.numel() == N * D  # what a script counts
    for rows in (weight, weight.grad, optimizer.state[weight]["exp_avg"]):
        assert isinstance(rows, RowTensor) and len(rows.to_local()) == graph.plain.num_owned < N


@pytest.mark.mpi(3)
def test_what_was_saved_goes_on_on_other_ranks(comm):
    from mpi4py import MPI

    graph = face_of(comm)
    model = our_model(graph, "made")
    optimizer = OPTIMIZERS["adam"](model.parameters())
    for _ in range(3):
        step(model, graph.y, optimizer, by_ids=False)
    file = io.BytesIO()
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, file)
    goes_on = [step(model, graph.y, optimizer, by_ids=False) for _ in range(2)]
    for ranks in (comm, MPI.COMM_SELF):
        other = face_of(ranks)
        file.seek(0)
        saved = torch.load(file)
        assert type(saved["model"]["table.weight"]) is torch.Tensor
        again = our_model(other, "made")
        again.load_state_dict(saved["model"])
        resumed = OPTIMIZERS["adam"](again.parameters())
        resumed.load_state_dict(saved["optimizer"])
        np.testing.assert_allclose([step(again, other.y, resumed, False) for _ in range(2)], goes_on, rtol=1e-9)


@pytest.mark.mpi(3)
def test_copies_of_a_model_and_of_its_state(comm):
    graph = face_of(comm)
    model = our_model(graph, "made")
    best, other = copy.deepcopy(model.state_dict()), copy.deepcopy(model)
    step(model, graph.y, OPTIMIZERS["momentum"](model.parameters()), by_ids=False)
    assert not torch.equal(model["table"].weight, other["table"].weight)
    F.cross_entropy(other["out"](other["table"].weight), graph.y).backward()
    assert len(list(other.parameters())) == 3 and float(other["table"].weight.grad.norm()) > 0
    model.load_state_dict(best)
    assert torch.equal(model["table"].weight, other["table"].weight)


@pytest.mark.mpi(3)
def test_clipping_by_our_optimizer(comm):
    graph = face_of(comm)
    found = []
    for model, y in ((plain_model(), graph.y.whole()), (our_model(graph, "made"), graph.y)):
        optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
        if found:
            optimizer = DistributedOptimizer(optimizer, graph, clip_grad=0.01)
        F.cross_entropy(model["out"](model["table"].weight), y).backward()
        if not found:
            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.01)
        optimizer.step()
        found.append(whole(model["table"].weight))
    torch.testing.assert_close(found[1], found[0], rtol=1e-6, atol=1e-6)  # torch adds 1e-6 to the norm


@pytest.mark.mpi(3)
def test_a_plain_parameter_of_all_vertices(comm):
    """Every rank has the whole table; its gradient is whole, too, through an aggregation."""
    from mpi4py import MPI

    found = []
    for graph in (face_of(MPI.COMM_SELF), face_of(comm)):
        torch.manual_seed(0)
        table = nn.Parameter(torch.randn(N, D, dtype=torch.float64))
        (spmm(graph, table) * table).sin().sum().backward()
        found.append(table.grad)
    torch.testing.assert_close(found[1], found[0], rtol=1e-10, atol=1e-10)


@pytest.mark.mpi(1, 2)
def test_initial_values(comm):
    graph = face_of(comm)
    table = dnn.NodeEmbedding(graph, D)
    values = {}
    for name in ("xavier_uniform_", "kaiming_uniform_", "kaiming_normal_", "uniform_", "normal_", "ones_", "zeros_"):
        torch.manual_seed(4)
        values[name] = float(getattr(nn.init, name)(table.weight).detach().abs().sum())
    values["constant_"] = float(nn.init.constant_(table.weight, 2.0).detach().sum())
    assert values["ones_"] == N * D and values["zeros_"] == 0 and values["constant_"] == 2 * N * D
    bound = np.sqrt(6 / (N + D))
    assert 0.35 * bound < values["xavier_uniform_"] / (N * D) < 0.65 * bound
    if comm.size > 1:
        assert all(np.allclose(one, list(values.values())) for one in comm.allgather(list(values.values())))


@pytest.mark.mpi(2)
def test_what_is_refused(comm):
    graph = face_of(comm)
    with pytest.raises(InputError, match="not one with plain_tensors=True"):
        dnn.NodeEmbedding(graph.plain, D)
    with pytest.raises(InputError, match=r"the table is \[40, 6\]: a graph of 41 vertices needs \[41, 6\]"):
        dnn.NodeEmbedding(graph, D, whole=torch.zeros(40, D))
    with pytest.raises(InputError, match=r"tables of rows .* train with optimizers by name"):
        Trainer(our_model(graph, "made"), graph, TrainConfig(epochs=1), optimizer=torch.optim.Adagrad)
    model = plain_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    dnn.distribute(model, graph)
    with pytest.raises(InputError, match=r"make the optimiser after dg\.nn.distribute"):
        optimizer.step()


@pytest.mark.mpi(2)
def test_tables_of_other_things_stay(comm):
    """Fewer rows, a padding row, sparse gradients, or a weight that two modules have."""
    graph = face_of(comm)
    tied = nn.Linear(D, N, bias=False)
    model = nn.ModuleList(
        [
            nn.Embedding(N - 1, D),
            nn.Embedding(N, D, padding_idx=0),
            nn.Embedding(N, D, sparse=True),
            nn.Embedding(N, D),
            tied,
        ]
    )
    tied.weight = model[3].weight
    dnn.distribute(model, graph)
    assert [type(one) for one in model] == [*[nn.Embedding] * 4, nn.Linear]
