"""Every refusal of rows, interfaces and the face is here, and what its line says to write runs, on 1 and 3 ranks."""

from types import SimpleNamespace

import pytest
import torch
import torch.nn.functional as F
from cut_graphs import dist_graph, random_graph
from refusals import written

import distgnn as dg
from distgnn.errors import InputError
from distgnn.graph.face.row_graph import with_rows

nn = pytest.importorskip("torch_geometric.nn")
utils = pytest.importorskip("torch_geometric.utils")
transforms = pytest.importorskip("torch_geometric.transforms")
N, D, C = 40, 6, 4
IDS = torch.tensor([3, 39, 7, 0])
SPARSE = torch.eye(N).double().to_sparse()


def scene(comm):
    source = random_graph(2, num_nodes=N, num_feats=D, num_edges=120)
    g = with_rows(dist_graph(source, comm))
    torch.manual_seed(0)
    x = g.x.detach().clone().requires_grad_()
    g.y, m = torch.arange(N) % C, torch.arange(N) < 15
    return SimpleNamespace(g=g, x=x, x3=x.view(-1, 2, 3), e=g.edge_index, y=g.y, m=m, w=torch.ones(D, 3).double())


def first_rows(s):
    return s.g.x.new_zeros(N, C)


# words of the line -> (what is refused on several ranks, what the line says to write instead)
ADVICE = {
    "a mask of more than one dimension stands alone": (
        lambda s: s.x[:, None][s.x > 0, 0],
        lambda s: s.x[s.x > 0],
    ),
    "take A.to_dense()": (
        lambda s: SPARSE @ s.x3,
        lambda s: (SPARSE @ s.x, SPARSE.to_dense() @ s.x, SPARSE.to_dense()[:3] @ s.x),
    ),
    "write (A.t() @ x).t()": (lambda s: s.x.t() @ SPARSE, lambda s: (SPARSE.t() @ s.x).t()),
    "a norm of the whole matrix": (lambda s: torch.linalg.norm(s.x, 1), lambda s: s.x.norm()),
    "leave create_graph=True out": (
        lambda s: torch.autograd.grad(s.x.pow(3).sum(), s.x, create_graph=True),
        lambda s: torch.autograd.grad(s.x.pow(3).sum(), s.x),
    ),
    "a table of rows of all ranks has no padding_idx": (
        lambda s: F.embedding(s.y, s.x, padding_idx=0),
        lambda s: F.embedding(s.y, s.x),
    ),
    "with two self-loops of each vertex": (
        lambda s: nn.GATConv(D, 2, add_self_loops=False).double()(s.x, loops(loops(s.e))),
        lambda s: nn.GATConv(D, 2, add_self_loops=False).double()(s.x, loops(utils.remove_self_loops(loops(s.e))[0])),
    ),
    "a transform of arcs cannot run": (lambda s: s.g.edge_stores, None),
    "an ordinary tensor keeps no gradient of rows": (
        lambda s: torch.zeros(N, D).double().add_(s.x),
        lambda s: (s.x.new_zeros(N, D).add_(s.x), torch.zeros_like(s.x).add_(s.x)),
    ),
    "along arcs: an ordinary tensor keeps no gradient": (
        lambda s: torch.zeros(N, D).double().index_add_(0, s.e[1], s.x[s.e[0]]),
        lambda s: s.x.new_zeros(N, D).index_add_(0, s.e[1], s.x[s.e[0]]),
    ),
    "arcs cannot be selected twice": (
        lambda s: s.e[:, torch.tensor([1, 1, 2])],
        lambda s: (s.e[:, torch.tensor([1, 2])], s.e[:, torch.arange(s.e.size(1)) < 9]),
    ),
    "ask for places of one column": (lambda s: s.x.nonzero(), lambda s: s.x[:, 0].nonzero()),
    "needs all rows: use attention along arcs": (
        lambda s: F.scaled_dot_product_attention(s.x[None], s.x[None], s.x[None]),
        lambda s: nn.GATConv(D, 2).double()(s.x, s.e),
    ),
    "needs one gradient for each row": (lambda s: s.x.relu().backward(), lambda s: s.x.relu().sum().backward()),
    "give ids of rows and one column each": (
        lambda s: s.x3[IDS, torch.tensor([0, 1, 0, 1]), 1],
        lambda s: s.x[IDS, torch.tensor([0, 1, 0, 1])],
    ),
    "give it an ordinary sequence of one dimension": (
        lambda s: torch.searchsorted(s.x, s.x),
        lambda s: torch.searchsorted(torch.arange(5).double(), s.x.detach()),
    ),
    "give it rows [N, C, L], or use F.dropout": (
        lambda s: F.dropout1d(s.x, 0.5),
        lambda s: (F.dropout1d(s.x3, 0.5), F.dropout(s.x, 0.5)),
    ),
    "with batch_first=True": (
        lambda s: torch.nn.LSTM(3, 2).double()(s.x3),
        lambda s: torch.nn.LSTM(3, 2, batch_first=True).double()(s.x3),
    ),
    "give the dimension that counts rows": (
        lambda s: torch.zeros(N, C).double().scatter_add(1, s.y[:, None], s.x[:, :1]),
        lambda s: torch.zeros(C, 1).double().scatter_add(0, s.y[:, None], s.x[:, :1]),
    ),
    "it makes a number for each pair of rows": (
        lambda s: s.x @ s.x.t(),
        lambda s: (
            (s.x[IDS] * s.x[IDS.flip(0)]).sum(-1),
            (lambda pairs: s.x[pairs[0]] * s.x[pairs[1]])(torch.randint(s.g.num_nodes, (2, 9))),
        ),
    ),
    "give dim=-1 for rows [N, D]": (
        lambda s: F.cosine_similarity(s.x, s.x * 2, dim=0),
        lambda s: F.cosine_similarity(s.x, s.x * 2, dim=-1),
    ),
    "give it [rows, channels, length]": (lambda s: F.max_pool1d(s.x, 2), lambda s: F.max_pool1d(s.x3, 2)),
    "track_running_stats=False": (
        lambda s: torch.nn.InstanceNorm1d(2, track_running_stats=True).double()(s.x3),
        lambda s: torch.nn.InstanceNorm1d(2, track_running_stats=False).double()(s.x3),
    ),
    "leave dim out: the different numbers": (lambda s: s.y[:, None].unique(dim=0), lambda s: s.y[:, None].unique()),
    "leave out= out": (lambda s: torch.add(s.x, 1, out=torch.empty(N, D)), lambda s: torch.add(s.x, 1)),
    "rows are the first dimension of scores and targets": (
        lambda s: F.cross_entropy(s.x.t(), s.y[:D]),
        lambda s: F.cross_entropy(s.x, s.y),
    ),
    "cannot be repeated one by one": (lambda s: s.x.repeat_interleave(2, 0), lambda s: s.x[IDS.repeat_interleave(2)]),
    "with a dimension before them, or split": (lambda s: s.x.reshape(4, -1), lambda s: s.x.reshape(-1, 2, 3)),
    "give reduction='mean', 'sum' or 'none'": (
        lambda s: F.mse_loss(s.x, s.x * 2, reduce=False),
        lambda s: F.mse_loss(s.x, s.x * 2, reduction="none"),
    ),
    "take .sum(), .mean() or a row first": (lambda s: s.x.item(), lambda s: (s.x.sum().item(), s.x[3][0].item())),
    "with include_self=False": (
        lambda s: torch.zeros(C).double().scatter_reduce(0, s.y, s.x[:, 0], "prod"),
        lambda s: torch.zeros(C).double().scatter_reduce(0, s.y, s.x[:, 0], "amax", include_self=False),
    ),
    "the arcs of a graph that is cut cannot be set": (
        lambda s: setattr(s.g, "edge_index", s.e),
        lambda s: nn.GCNConv(D, 2).double()(s.x, s.e[:, torch.arange(s.e.size(1)) % 2 == 0]),
    ),
    "the rows are the channels here: give it [N, C]": (
        lambda s: F.batch_norm(s.x.t(), None, None, training=True),
        lambda s: F.batch_norm(s.x, None, None, training=True),
    ),
    "truth value of rows of all ranks": (lambda s: bool(s.x > 0), lambda s: (bool((s.x > 0).any()), (s.x > 0).all())),
    "would make a row for each pair": (
        lambda s: s.x[:, None] - s.x[None],
        lambda s: s.x[IDS] - s.x[IDS.flip(0)],
    ),
    "and an ordinary tensor of {}": (
        lambda s: s.x + torch.zeros(N - 1, D),
        lambda s: (s.x + torch.zeros(N, D), s.x + s.x.new_zeros(N, D), s.x + torch.zeros_like(s.x)),
    ),
    "write every letter and the result": (
        lambda s: torch.einsum("nd,de", s.x, s.w),
        lambda s: torch.einsum("nd,de->ne", s.x, s.w),
    ),
    "write x.mean() and x.var()": (
        lambda s: F.layer_norm(s.x, (N, D)),
        lambda s: (s.x - s.x.mean()) / s.x.var(),
    ),
    "scatter takes columns, dim=1": (
        lambda s: first_rows(s).scatter(0, s.y[:, None], 1.0),
        lambda s: (first_rows(s).scatter(1, s.y[:, None], 1.0), first_rows(s).__setitem__(IDS, 1.0)),
    ),
    "gather takes columns, dim=1": (
        lambda s: s.x.gather(0, s.y[:, None]),
        lambda s: (s.x.gather(1, s.y[:, None]), s.x[IDS]),
    ),
    "write x[rows] = values or": (
        lambda s: s.x.detach().clone().__setitem__((IDS[:, None], torch.tensor([0, 1])), 0),
        lambda s: (
            s.x.detach().clone().__setitem__(IDS, 0),
            s.x.detach().clone().__setitem__((s.m, torch.zeros(15).long()), 0),
            s.x.detach().clone().__setitem__((slice(2, 9), [0, 1]), 0),
        ),
    ),
    "by id write x.index_add_(0, ids, values)": (
        lambda s: first_rows(s).scatter_add_(0, s.y[:, None].expand(-1, C), first_rows(s)),
        lambda s: (
            first_rows(s).index_add_(0, IDS, torch.ones(4, C).double()),
            torch.zeros(C, C).double().index_add_(0, s.y, first_rows(s)),
            first_rows(s).index_add_(0, s.e[1], first_rows(s)[s.e[0]]),
        ),
    ),
    "do not go together: choose both": (lambda s: s.x[s.m] + s.x[~s.m], lambda s: s.x[s.m] + s.x[s.m]),
    "; use x.to_local() for this rank's rows": (
        lambda s: torch.index_select(s.x, 0, IDS, out=torch.empty(4, D)),
        lambda s: (s.x.to_local().sort(0), s.g.gather_rows(s.x)),
    ),
    "torch's {} over the rows of all ranks": (
        lambda s: s.x.sort(0),
        lambda s: (s.x.to_local().sort(0), s.g.gather_rows(s.x)),
    ),
    "PyG's {} cannot run": (lambda s: utils.is_undirected(s.e), lambda s: s.g.is_undirected()),
    "T.{} cannot run": (lambda s: transforms.ToSparseTensor()(s.g), lambda s: nn.GCNConv(D, 2).double()(s.x, s.e)),
    "give one number, or rows chosen by the same mask": (
        lambda s: s.x.detach().clone().__setitem__(s.x > 0, torch.arange(9.0).double()),
        lambda s: (lambda z: z.__setitem__(z > 0, z[z > 0] * 2))(s.x.detach().clone()),
    ),
    "give the column another name": (
        lambda s: setattr(s.g, "size", torch.zeros(N)),
        lambda s: setattr(s.g, "my_size", torch.zeros(N)),
    ),
    "these are of all ranks already: leave it out": (lambda s: dg.ops.all_sum(s.g, s.x.sum()), lambda s: s.x.sum()),
    "a mask of {} values for {} arcs": (
        lambda s: s.e[:, torch.ones(7, dtype=torch.bool)],
        lambda s: s.e[:, torch.ones(s.e.size(1), dtype=torch.bool)],
    ),
    "index the columns in one dimension": (
        lambda s: s.x3[:, [0, 1], [0, 1]],
        lambda s: s.x[:, torch.tensor([0, 1])],
    ),
    "index an ordinary tensor by rows in its first": (lambda s: s.w[None, s.y], lambda s: s.w[s.y]),
}
# Lines that say what is wrong, or what to do before a graph is cut, or that tests of their own try.
SAY_NO_CODE = (
    """
DGL asks for {}|a function of edges or nodes has no {}|lives on the CPU|of two graphs with other numbers of ranks
a pool over all vertices has one|a readout over all vertices|a torch.autograd.Function of one's own
whose order in the source is not known|apply_edges on some edges|apply_nodes on some vertices|arcs cannot be added
arcs that are there twice|dgl.{} needs a whole graph|edge_index has the vertices of one|edge_softmax over some edges
graph.{} cannot run distributed|graph.{} is {}|by rows of one dimension each|message function {} gives
more than 1000 rows are not|rows cannot be joined with update|rows of all ranks are not compiled|leave presorted
cannot be padded: add vertices|in {} segments cannot run|cannot be expanded to|cannot be indexed so
the numbers of values differ|were written to in place after|was given other ids on other ranks
sparse gradients of a table|take the norm of numbers|cannot be saved: load the graph|the first dimension of rows counts
the message function gives|the message function writes|the only row is on one rank|the vertices and edges of the whole
there is no row on any rank|too many indices|DistGraph: {}|update_all(
{} has {} rows|is no message function|over the out-arcs|rows for {} arcs
vertices of all ranks: give
rows where this rank has|takes rows [N, ...]|, and arcs lead from {} to|rows of two types|a graph with types
types and relations of a graph|the graph its types and relations before|joined with other relations', each
name the relation, etype=|name the type: the graph|update_all of several|unknown cross_reducer
of several types: give a dict|needs one type at both ends|of a relation between two types
""".strip()
    .replace("\n", "|")
    .split("|")
)
EXACTLY = ("the rows are the channels here", "{} cannot run distributed: {}")


def loops(edge_index):
    return utils.add_self_loops(edge_index, num_nodes=N)[0]


def test_every_refusal_is_known():
    known = [*ADVICE, *SAY_NO_CODE]
    missing = [text for text in written() if text not in EXACTLY and not any(words in text for words in known)]
    assert missing == []
    gone = [words for words in known if not any(words in text for text in written())]
    assert gone == []


@pytest.mark.mpi(1, 3)
@pytest.mark.parametrize("words", ADVICE)
def test_what_a_refusal_says_to_write_runs(comm, words):
    refused, advice = ADVICE[words]
    s = scene(comm)
    if comm.size > 1:
        with pytest.raises(InputError) as error:
            refused(s)
        assert words.replace("{}", "").split("  ")[0].strip() in str(error.value) or "{}" in words
        assert "\n" not in str(error.value)
    if advice is not None:
        advice(s)


# --- tables of advice by name: each text runs -----------------------------------------------------------------------


def cut_again(s, change=lambda data: data, **options):
    """The arcs of the graph, prepared before it is cut or by the cut."""
    data = change(random_graph(2, num_nodes=N, num_feats=D, num_edges=120).to_pyg())
    return with_rows(dist_graph(dg.GraphData.from_pyg(data), s.g.plain.comm, **options))


def pairs(s):
    ids = torch.randint(s.g.num_nodes, (2, 9))
    return (s.x[ids[0]] * s.x[ids[1]]).sum(-1)


ON_DATA = "on the Data that dg.GraphData.from_pyg reads"
TEXTS = {  # words of a text -> what it says to write
    "draw with": lambda s: [one(s.x) for one in (torch.rand_like, torch.randn_like, F.dropout)],
    "multinomial(count)": lambda s: s.x[s.y.double().whole().multinomial(3)],
    "take the pairs that are needed": pairs,
    "write torch.stack": lambda s: torch.stack([s.x, s.x], 2),
    "x.squeeze(": lambda s: s.x[:, None].squeeze(1),
    "x.unsqueeze(": lambda s: s.x.unsqueeze(1),
    "x.t(": lambda s: s.x.t(),
    "x.transpose(": lambda s: s.x.transpose(0, 1),
    "write x[mask] = values": lambda s: s.x.detach().clone().__setitem__(s.m, 0),
    "use attention along arcs (GATConv)": lambda s: nn.GATConv(D, 2).double()(s.x, s.e),
    "F.triplet_margin_loss": lambda s: F.triplet_margin_loss(s.x, s.x * 2, s.x * 3),
    **{
        f"x.whole().{name}(": lambda s, name=name, given=given: getattr(s.x.whole(), name)(*given)
        for name, given in (("median", ()), ("nanmedian", ()), ("mode", (0,)), ("kthvalue", (2, 0)), ("cumsum", (0,)))
    },
    **{
        f"x.whole().{name}(": lambda s, name=name: getattr(s.x.whole(), name)(0.5)
        for name in ("quantile", "nanquantile")
    },
    "(a @ b).sum(0)": lambda s: (s.x3 @ torch.ones(3, 2).double()).sum(0),
    "--self-loops add, and leave": lambda s: cut_again(s, self_loops="add"),
    "--self-loops remove, or add": lambda s: cut_again(s, self_loops="remove").has_self_loops() and 1 / 0,
    "--direction both, and leave": lambda s: cut_again(s, direction="both"),
    "draw pairs of ids": pairs,
    "cut it with direction='both'": lambda s: transforms.ToUndirected()(
        cut_again(s, lambda data: data.coalesce(), direction="both")
    ),
    "cut the graph with direction='both'": lambda s: utils.to_undirected(
        cut_again(s, lambda data: data.coalesce(), direction="both").edge_index
    ),
    "cut it with self_loops='remove'": lambda s: transforms.RemoveSelfLoops()(cut_again(s, self_loops="remove")),
    "transform the graph before it is cut": lambda s: cut_again(s, transforms.RemoveIsolatedNodes()),
    "mask rows, x[mask], or take it": lambda s: (s.x[s.m], cut_again(s, lambda data: data.subgraph(torch.arange(9)))),
    "drop arcs with dropout_edge": lambda s: (utils.dropout_edge(s.e), s.x * (s.y > 1).double()[:, None]),
    "multiply by the adjacency": lambda s: (dg.ops.spmm(s.g, s.x), nn.SimpleConv()(s.x, s.e)),
    f"take it before the graph is cut, {ON_DATA}": lambda s: cut_again(
        s, lambda data: (utils.assortativity(data.edge_index), data)[1]
    ),
    "data.is_undirected()": lambda s: s.g.is_undirected(),
    "data.has_isolated_nodes()": lambda s: s.g.has_isolated_nodes(),
    "leave it out": lambda s: nn.GCNConv(D, 2).double()(s.x, s.e),
    "edge_pairs": lambda s: with_rows(dist_graph(random_graph(2).split_links(0.1, 0.1), s.g.plain.comm)).edge_pairs(
        "train"
    ),
}


@pytest.mark.mpi(1, 3)
def test_each_text_of_the_tables_runs(comm):
    from distgnn.interop.dgl.dispatch import BEFORE
    from distgnn.interop.pyg.refused import TRANSFORMS, UTILS
    from distgnn.rows.row_tensor import INSTEAD

    tried = set()
    for text in {*INSTEAD.values(), *BEFORE.values(), *UTILS.values(), *TRANSFORMS.values()}:
        (words,) = [words for words in TEXTS if words in text][:1] or [None]
        assert words, text
        tried.add(words)
    for words in sorted(tried):  # in one order on all ranks
        TEXTS[words](scene(comm))
    assert tried == TEXTS.keys()
