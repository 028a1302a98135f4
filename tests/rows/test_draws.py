"""Random numbers of rows do not depend on the number of ranks."""

import pytest
import torch
import torch.nn.functional as F
from cut_graphs import dist_graph, random_graph, whole_graph
from mpi4py import MPI
from row_scenes import scenes
from torch import nn

from distgnn.graph.face.row_graph import with_rows


def in_place(function, x, *args):
    """What the input holds afterwards: the result is not used."""
    x = x.detach().clone()
    function(x, *args, training=True, inplace=True)
    return x


DRAWS = {
    "rand_like": torch.rand_like,
    "randn_like": torch.randn_like,
    "randint_like": lambda x: torch.randint_like(x, 0, 9),
    "bernoulli": lambda x: torch.bernoulli(torch.full_like(x, 0.3)),
    "uniform_": lambda x: x.clone().uniform_(-1, 2),
    "normal_": lambda x: x.clone().normal_(1, 2),
    "dropout": lambda x: F.dropout(torch.ones_like(x), 0.4),
    "dropout of a mask": lambda x: F.dropout(torch.ones_like(x[::2]), 0.4),
    "dropout1d in place": lambda x: in_place(F.dropout1d, torch.ones_like(x)[..., None], 0.4),
    "dropout2d in place": lambda x: in_place(F.dropout2d, torch.ones_like(x)[..., None, None], 0.4),
    "rrelu in place": lambda x: in_place(F.rrelu, x),
    "gumbel": lambda x: F.gumbel_softmax(x.detach(), dim=1),
}


@pytest.mark.mpi(1, 3)
def test_random_numbers_are_those_of_one_rank(comm):
    (_, alone), (_, rows) = scenes(MPI.COMM_SELF), scenes(comm)
    for name, draw in DRAWS.items():
        found = []
        for x in (alone.x, rows.x):
            torch.manual_seed(5)
            found.append((draw(x).whole(), draw(x).whole()))
        (one, other), (mine, mine_again) = found
        torch.testing.assert_close(mine, one, rtol=1e-12, atol=1e-12, msg=name)
        torch.testing.assert_close(mine_again, other, rtol=1e-12, atol=1e-12, msg=name)
        assert not torch.equal(mine, mine_again), name  # each draw is another
    torch.manual_seed(5)
    assert abs(float(torch.randn_like(rows.x).mean())) < 0.3 and 0.8 < float(torch.randn_like(rows.x).std()) < 1.2


class Dropping(nn.Module):
    """Dropout as scripts for PyG have it: the function, on vertices, attention with and without loops, weights."""

    def __init__(self, gnn):
        super().__init__()
        self.first = gnn.GATConv(8, 2, 4, dropout=0.4)
        self.second = gnn.TransformerConv(8, 8, dropout=0.3)
        self.spread = gnn.APPNP(2, 0.1, dropout=0.3)
        self.last = gnn.ARMAConv(8, 4, num_stacks=2, dropout=0.3)
        self.drop = nn.Dropout(0.2)

    def forward(self, x, edge_index):
        x = F.dropout(x, p=0.5, training=self.training)
        x = self.drop(F.elu(self.first(x, edge_index)))
        x = F.relu(self.second(x, edge_index))
        return self.last(self.spread(x, edge_index), edge_index)


@pytest.mark.mpi(3)
def test_functional_dropout_does_not_depend_on_the_number_of_ranks(comm):
    gnn, data = pytest.importorskip("torch_geometric.nn"), random_graph(4)
    torch.manual_seed(2)
    model = Dropping(gnn).double()

    def rows_of(graph):
        torch.manual_seed(3)
        made = [model.train(mode)(graph.x, graph).detach() for mode in (True, True, False)]
        return [one.whole() for one in made]

    one, again, still = rows_of(with_rows(whole_graph(data)))
    assert abs(one - again).max() > 1e-3 and abs(one - still).max() > 1e-3  # a mask of its own each time
    for mine, theirs in zip(rows_of(with_rows(dist_graph(data, comm))), (one, again, still), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-9, atol=1e-10)
