"""Features centred and scaled at load: plain torch's numbers, sparse as dense, the same on any number of ranks."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from cut_graphs import dist_graph, gather_rows, random_cut, random_graph, whole_graph
from scipy import sparse

from distgnn.comm import sum_over_ranks
from distgnn.config import ModelConfig, TrainConfig
from distgnn.config.run import parse_feat_norm
from distgnn.datasets import GraphData
from distgnn.errors import InputError, RunError
from distgnn.nn import build_model
from distgnn.ops import SparseRows
from distgnn.partition import VertexCut
from distgnn.train import Trainer
from distgnn.train.checkpoint.weights import feat_norm_file, read_feat_norm
from distgnn.train.loss import rank_loss

WIDTH = 40
CHAINS = ("center", "standardize", "row-l2", "row-l2,center", "row-l2+standardize", "standardize,row-l2")


def sparse_graph(seed: int = 0) -> tuple[GraphData, np.ndarray]:
    """A graph with features stored sparse, and the same as an array: a constant column, empty columns and rows."""
    data = random_graph(seed)
    feats = sparse.random(data.num_nodes, WIDTH, 0.05, "lil", dtype=np.float32, random_state=seed)
    feats[:, 3] = 0.3
    feats[:, 5], feats[11] = 0, 0
    feats = feats.tocsr()
    feats.eliminate_zeros()
    return GraphData(**vars(data) | {"feats": feats}), feats.toarray()


def plain(feats: np.ndarray, chain: str, rows=slice(None)) -> torch.Tensor:
    """What torch makes of the whole matrix; `rows`: those that statistics are of."""
    x = torch.from_numpy(feats).double()
    for step in parse_feat_norm(chain):
        if step == "row-l2":
            x = torch.nn.functional.normalize(x, dim=1)
            continue
        deviation = x[rows].std(0, correction=0)
        scale = torch.where(deviation < 1e-9, 0.0, 1 / deviation) if step == "standardize" else 1.0
        x = (x - x[rows].mean(0)) * scale
    return x


def as_dense(data: GraphData, rows) -> GraphData:
    return GraphData(**vars(data) | {"feats": np.asarray(rows)})


@pytest.mark.mpi(3)
@pytest.mark.parametrize("chain", CHAINS)
def test_rows_are_plain_torchs_sparse_or_dense(comm, chain):
    data, feats = sparse_graph()
    kept, dense = (dist_graph(one, comm, feat_norm=chain) for one in (data, as_dense(data, feats)))
    assert isinstance(kept.feats, SparseRows) and not isinstance(dense.feats, SparseRows)
    for graph in (kept, dense):
        found = graph.feats.dense() if isinstance(graph.feats, SparseRows) else graph.feats
        np.testing.assert_allclose(gather_rows(graph, found), plain(feats, chain), atol=1e-13)


def outcome(graph, feats, config: ModelConfig):
    """Logits and gradients of one model, and whether features stayed sparse."""
    torch.manual_seed(0)
    network = build_model(config, graph.num_feats, graph.num_classes).double()
    logits = network(graph, feats)
    rank_loss(graph, logits).backward()
    grads = [sum_over_ranks(graph.comm, parameter.grad.numpy()) for parameter in network.parameters()]
    return gather_rows(graph, logits.detach()), grads, "_dense" not in vars(feats)


@pytest.mark.mpi(3)
@pytest.mark.parametrize(
    ("model", "around"),
    [
        *[(model, {}) for model in ("sage", "gat", "gin")],
        *[(model, {"block": "residual", "head": "linear"}) for model in ("sage", "gcn", "gat")],
        *[("sage", {"block": "preact"}), ("gcn", {"stem": "linear", "head": "cat"}), ("gat", {"remat": True})],
    ],
)
def test_layers_compute_what_they_compute_of_plain_rows(comm, model, around):
    """Without a dense row but for gin, which aggregates first; rows of ranks whose parts are empty too."""
    data, feats = sparse_graph()
    config = ModelConfig(model, 8, num_layers=2, dropout=0.0, num_heads=2, **around)
    assert config.takes_sparse_feats == (model != "gin")
    cut = random_cut(data.edge_list("stored", "keep"), comm.size)
    parts = [None if one is None else one % 2 for one in (cut.edge_part, cut.owner, cut.reverse_part)]
    cut = VertexCut(3, *parts)  # one rank has nothing
    graph, whole = dist_graph(data, comm, cut, feat_norm="row-l2,center"), whole_graph(data)
    logits, grads, stays_sparse = outcome(graph, graph.feats, config)
    expected, expected_grads, _ = outcome(whole, plain(feats, "row-l2,center")[whole.owned_ids], config)
    np.testing.assert_allclose(logits, expected, atol=1e-11)
    for found, wanted in zip(grads, expected_grads, strict=True):
        np.testing.assert_allclose(found, wanted, atol=1e-11)
    assert stays_sparse == (model != "gin")


def test_bfloat16_rows_are_centred_as_well_as_float32_rows():
    """Columns share a large mean: rounding m' W to 8 bits would shift all rows by more than they differ."""
    matrix = sparse.csr_matrix(50 + np.random.default_rng(1).random((200, 30), dtype=np.float32))
    weight = torch.randn(30, 16, generator=torch.Generator().manual_seed(0)).bfloat16()
    mean = np.asarray(matrix.mean(0), dtype=np.float64)[0]
    shift = np.ones(200), mean
    rows = SparseRows(matrix, torch.bfloat16, shift=shift)
    exact = (torch.from_numpy(matrix.toarray()).double() - torch.from_numpy(mean)) @ weight.double()
    found = rows @ weight
    assert (found.double() - exact).abs().max() < exact.abs().max() / 100
    wanted = (torch.from_numpy(matrix.toarray()).double() - torch.from_numpy(mean)).T @ found.double()
    torch.testing.assert_close(rows.turned_times(found).double(), wanted, rtol=0, atol=wanted.abs().max().item() / 1e4)
    torch.testing.assert_close(rows.dense().double(), torch.from_numpy(matrix.toarray() - mean), rtol=1e-2, atol=1e-2)


@pytest.mark.mpi(2)
def test_inductive_statistics_are_of_training_vertices(comm):
    data, feats = sparse_graph()
    chosen = data.split_masks()["train"]
    graph = dist_graph(data, comm, feat_norm="standardize", inductive=True)
    rows = gather_rows(graph, graph.feats.dense())
    np.testing.assert_allclose(rows, plain(feats, "standardize", np.asarray(chosen)), atol=1e-12)
    trained = Trainer(build_model(ModelConfig(hidden_feats=8), WIDTH, 4), graph, TrainConfig(epochs=1, inductive=True))
    subgraph = trained.graph
    assert subgraph.feat_norm is graph.feat_norm
    with pytest.raises(InputError, match="load the graph with inductive=True"):
        of_all = dist_graph(data, comm, feat_norm="center")
        Trainer(build_model(ModelConfig(hidden_feats=8), WIDTH, 4), of_all, TrainConfig(inductive=True))


@pytest.mark.mpi(2)
def test_a_run_keeps_what_was_done_to_its_features(comm, shared_tmp_path):
    """The file gives the same rows; another feat_norm is refused; another rank count is the same graph."""
    data, run = sparse_graph()[0], shared_tmp_path / "run"

    def trainer(graph, **config):
        torch.manual_seed(0)
        network = build_model(ModelConfig(hidden_feats=8), WIDTH, 4)
        return Trainer(network, graph, TrainConfig(run_dir=str(run), log=None, **config), say=lambda text: None)

    graph = dist_graph(data, comm, feat_norm="standardize")
    trainer(graph, epochs=2).fit()
    comm.Barrier()
    settings = {"run": {"feat_norm": "standardize"}, "data": {"graph": {"num_feats": WIDTH}}}
    again = dist_graph(data, comm, feat_norm=read_feat_norm(str(run), settings))
    assert torch.equal(again.feats.dense(), graph.feats.dense())
    with pytest.raises(InputError, match="feat_norm is standardize there, center here"):
        trainer(dist_graph(data, comm, feat_norm="center"), epochs=3, resume=True).fit()
    comm.Barrier()
    if comm.rank == 0:
        resumed = trainer(whole_graph(data, feat_norm="standardize"), epochs=3, resume=True).fit()
        assert len(resumed.records) == 3
        feat_norm_file(run).write_bytes(b"no")
        with pytest.raises(RunError, match=r"feat_norm\.safetensors is damaged"):
            read_feat_norm(str(run), settings)
        feat_norm_file(run).unlink()
        with pytest.raises(RunError, match="is missing: the run was trained with feat_norm standardize"):
            read_feat_norm(str(run), settings)
    comm.Barrier()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("centre", "unknown feat_norm 'centre': .*did you mean center"),
        ("center,standardize", "standardize centers too, leave center out"),
        ("none,center", "expected none, or different steps"),
        ("center,center", "expected none, or different steps"),
    ],
)
def test_what_is_no_feat_norm(text, says):
    with pytest.raises(InputError, match=says):
        parse_feat_norm(text)
    with pytest.raises(InputError, match=says):
        whole_graph(random_graph(), feat_norm=text)


def test_a_graph_without_features_has_nothing_to_centre():
    data = replace(random_graph(), feats=None)
    with pytest.raises(InputError, match="feat_norm center needs features"):
        whole_graph(data, feat_norm="center")
