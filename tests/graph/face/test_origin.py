"""Ranks that hold different things beside rows are stopped before the optimiser's step, with what differs and both
values; what a rank does for itself stops nobody."""

import random

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from cut_graphs import dist_graph, random_graph

from distgnn.comm.ending.leaving import watched
from distgnn.errors import InputError, RunError
from distgnn.graph.face.row_graph import with_rows
from distgnn.nn import GraphConv
from distgnn.ops import spmm
from distgnn.system.other_libraries import import_dgl

torch.set_num_threads(1)


class Net(torch.nn.Module):
    def __init__(self, data, p=0.5):
        super().__init__()
        self.first, self.norm = torch.nn.Linear(data.num_features, 8).double(), torch.nn.BatchNorm1d(8).double()
        self.last, self.drop = torch.nn.Linear(8, int(data.num_classes)).double(), torch.nn.Dropout(p)

    def forward(self, x):
        return self.last(self.drop(self.norm(self.first(x)).relu()))


class Script:
    """A training loop; `odd`: what rank 1 does otherwise, by place."""

    def __init__(self, comm):
        self.data = with_rows(dist_graph(random_graph(3), comm))
        self.odd = comm.rank == 1
        torch.manual_seed(0)
        self.model = Net(self.data)
        self.optimizer = torch.optim.Adam(self.model.parameters(), 0.01, weight_decay=1e-4)

    def run(self, steps=3, x=None, mask=None, factor=1.0, before=None, between=None):
        data, model, optimizer = self.data, self.model, self.optimizer
        for step in range(steps):
            if before is not None:
                before(step)
            optimizer.zero_grad()
            out = model(data.x if x is None else x())
            chosen = data.train_mask if mask is None else mask()
            loss = F.cross_entropy(out[chosen], data.y[chosen]) * factor
            loss.backward()
            if between is not None:
                between(step)
            optimizer.step()
            self.steps = step + 1


def settings(**changed):
    return lambda script: script.optimizer.param_groups[0].update(changed) if script.odd else None


def scheduler(script):
    schedule = torch.optim.lr_scheduler.StepLR(script.optimizer, 1, 0.5 if script.odd else 1.0)
    return {"before": lambda step: step and schedule.step()}


def changed(act):
    """Weights are changed by one rank, before the second step."""
    return lambda script: {"before": lambda step: act(script) if step == 1 and script.odd else None}


def ema(script):
    with torch.no_grad():
        for one in script.model.parameters():
            one.mul_(0.9)


def loaded(script):
    script.model.load_state_dict({name: 2 * one for name, one in script.model.state_dict().items()})


def shuffled(script):
    masks = [script.data.train_mask, script.data.val_mask, script.data.test_mask]
    random.Random(int(script.odd)).shuffle(masks)
    return {"mask": lambda: masks[0]}


def own_split(script):
    places = np.random.default_rng(script.data.rank).permutation(int(script.data.num_nodes))
    mask = torch.zeros(int(script.data.num_nodes), dtype=torch.bool)
    mask[torch.from_numpy(places[:20])] = True
    return {"mask": lambda: mask}


def own_split_as_a_column(script):
    script.data.train_mask = own_split(script)["mask"]()


def mixup(script):
    lam = 0.25 + 0.5 * script.odd
    order = torch.randperm(int(script.data.num_nodes))
    return {"x": lambda: lam * script.data.x + (1 - lam) * script.data.x[order]}


def other_ids(script):
    order = torch.from_numpy(np.random.default_rng(script.data.rank).permutation(int(script.data.num_nodes)))
    return {"x": lambda: script.data.x + script.data.x[order]}


def noise(script):
    table = torch.from_numpy(np.random.default_rng(script.data.rank).standard_normal(script.data.x.shape))
    return {"x": lambda: script.data.x + table}


def seeded_by_rank(script):
    torch.manual_seed(script.data.rank)
    return {"x": lambda: script.data.x + torch.randn_like(script.data.x)}


def eval_mode(script):
    if script.odd:
        script.model.eval()


def other_p(script):
    script.model.drop.p = 0.25 if script.odd else 0.5


def local_clip(script):
    return {
        "between": lambda step: torch.nn.utils.clip_grad_norm_(
            script.model.parameters(), float(script.data.x.to_local().abs().mean()) / 100
        )
    }


NUMBER, TENSOR, COLUMN = "a number beside rows", "a tensor beside rows", "the column"
FIRST, SECOND = 0, 1  # steps that are taken before ranks stop
ODD = {  # name -> (what is done, of which kind it is said to be, steps)
    "mixup": (mixup, NUMBER, FIRST),
    "a factor of the loss": (lambda script: {"factor": 1.0 + script.odd}, "the loss", FIRST),
    "masks that were shuffled": (shuffled, COLUMN, FIRST),
    "an own split": (own_split, TENSOR, FIRST),
    "an own split, a column": (own_split_as_a_column, TENSOR, FIRST),
    "other ids": (other_ids, "ids|beside rows", FIRST),
    "noise of an own generator": (noise, TENSOR, FIRST),
    "torch seeded by rank": (seeded_by_rank, "torch's random numbers", FIRST),
    "evaluation mode": (eval_mode, "every rank must make the same calls", FIRST),
    "dropout": (other_p, NUMBER, FIRST),
    "lr": (settings(lr=0.02), "the optimiser.*lr 0.01.*lr 0.02", FIRST),
    "betas": (settings(betas=(0.8, 0.9)), "betas", FIRST),
    "a scheduler": (scheduler, "the optimiser.*lr", SECOND),
    "weights in place": (changed(ema), "the weights", SECOND),
    "weights loaded": (changed(loaded), TENSOR, SECOND),
    "a clip by local norms": (local_clip, "the weights", SECOND),
}


@pytest.mark.mpi(3)
@pytest.mark.parametrize("odd", ODD)
def test_ranks_that_differ_stop_before_the_step(comm, odd):
    act, said, steps = ODD[odd]
    script = Script(comm)
    script.steps = 0
    given = act(script) or {}
    with pytest.raises((RunError, InputError), match=said):
        script.run(**given)
    assert script.steps == steps


def convolution(name, data):
    """(a layer of another library or of ours, what it takes)"""
    if name.startswith("PyG"):
        convs = pytest.importorskip("torch_geometric.nn")
        layer = {"PyG, a kernel": convs.GCNConv, "PyG, messages": convs.GraphConv, "PyG, attention": convs.GATConv}[
            name
        ]
        return layer(data.num_features, 4).double(), lambda conv, x: conv(x, data.edge_index)
    if name == "DGL":
        dgl = import_dgl()
        return dgl.nn.SAGEConv(data.num_features, 4, "mean").double(), lambda conv, x: conv(data, x)
    if name == "ours":
        return GraphConv(data.num_features, 4, allow_zero_in_degree=True).double(), lambda conv, x: conv(data, x)
    return None, lambda conv, x: spmm(data, x)


@pytest.mark.mpi(2)
@pytest.mark.parametrize("evaluated", [False, True], ids=["training", "evaluation"])
@pytest.mark.parametrize("name", ["PyG, a kernel", "PyG, messages", "PyG, attention", "DGL", "ours", "an operator"])
def test_through_layers(comm, name, evaluated):
    """What differs before a layer is known behind it; weights that differ are found where nothing is trained."""
    data = with_rows(dist_graph(random_graph(3), comm))
    torch.manual_seed(0)
    conv, run = convolution(name, data)
    with torch.set_grad_enabled(not evaluated):
        assert torch.isclose(run(conv, data.x).mean(), run(conv, data.x * 1.0).mean())
        with pytest.raises(RunError, match=NUMBER):
            run(conv, data.x * (1.0 + comm.rank)).mean()
        if evaluated and conv is not None:
            next(conv.parameters()).add_(comm.rank)
            with pytest.raises(RunError, match=TENSOR):
                run(conv, data.x).mean()


@pytest.mark.mpi(3)
def test_a_script_whose_ranks_want_to_differ_is_left_alone(comm):
    script = Script(comm)
    data = script.data
    drawn = np.random.default_rng(data.rank).random()

    def alone(step):
        if data.rank == 1:  # functions without messages, of one rank alone
            assert drawn * data.x.to_local().sum() != 0
            (data.x * drawn).relu()
            data.train_mask & data.val_mask
            F.dropout(data.x, drawn, training=False)
            random.random()

    script.run(before=alone)
    weights = [one.detach().clone() for one in script.model.parameters()]
    other = Script(comm)
    other.run()
    assert all(map(torch.equal, weights, other.model.parameters()))


@pytest.mark.mpi(2)
def test_it_is_switched_off(comm):
    alike = watched(comm).crew.alike
    alike.wanted = False
    try:
        script = Script(comm)
        script.run(**mixup(script))
        assert script.steps == 3
    finally:
        alike.wanted = True
