"""Models of centred and scaled features compute what they compute of plain rows, and keep what was done to them."""

import numpy as np
import pytest
import torch
from cut_graphs import dist_graph, gather_rows, random_cut, random_graph, whole_graph
from scipy import sparse
from sparse_feats import WIDTH, plain, sparse_graph

from distgnn.comm import sum_over_ranks
from distgnn.config import ModelConfig, TrainConfig
from distgnn.config.run import parse_feat_norm
from distgnn.errors import InputError, RunError
from distgnn.nn import build_model
from distgnn.ops import SparseRows
from distgnn.partition import VertexCut
from distgnn.train import Trainer
from distgnn.train.checkpoint.weights import feat_norm_file, read_feat_norm
from distgnn.train.metrics import rank_loss


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
