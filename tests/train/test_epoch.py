"""Ways to run an epoch that change memory and time, not the model: bfloat16 rows, rematerialisation, sparse input."""

from dataclasses import replace

import numpy as np
import pytest
from cut_graphs import dist_graph, on_rank_0, random_cut, random_graph, whole_graph
from scipy import sparse
from trainers import trainer_of

from distgnn.config import ModelConfig
from distgnn.nn import build_model
from distgnn.ops import SparseRows

NARROW = [("sage", "layer"), ("gcn", "none"), ("gat", "layer"), ("gin", "none"), ("gin", "layer")]


def losses(graph, name: str, norm: str = "layer", epochs: int = 4, **options) -> list[float]:
    sizes = ModelConfig(name, 8, 3, norm=norm, **options)
    return trainer_of(graph, sizes, epochs=epochs, eval_every=epochs).fit().losses


@pytest.mark.mpi(3)
@pytest.mark.parametrize(("name", "norm"), NARROW)
def test_bfloat16_stays_within_its_rounding(comm, name, norm):
    """8 bits of mantissa are 0.4 % of a row; a loss over 30 rows after 4 steps averages that."""
    data = random_graph(4)
    half = losses(dist_graph(data, comm, dtype="bfloat16"), name, norm)
    one, exact = on_rank_0(
        comm, lambda: [losses(whole_graph(data, dtype=dtype), name, norm) for dtype in ("bfloat16", "float32")]
    )
    np.testing.assert_allclose(half, one, rtol=1e-2)
    np.testing.assert_allclose(half, exact, rtol=1e-2)
    assert half != exact


@pytest.mark.mpi(2)
def test_bfloat16_where_rows_are_late(comm):
    data, options = random_graph(4), {"algorithm": "cd-2"}
    half = losses(dist_graph(data, comm, dtype="bfloat16", **options), "sage")
    np.testing.assert_allclose(half, losses(dist_graph(data, comm, dtype="float32", **options), "sage"), rtol=1e-2)


@pytest.mark.mpi(2)
@pytest.mark.parametrize(
    ("name", "dtype"),
    [("sage", "float32"), ("sage", "bfloat16"), ("gat", "float32"), ("gat", "bfloat16"), ("gin", "bfloat16")],
)
def test_rematerialisation_changes_no_bit(comm, name, dtype):
    data = random_graph(5)
    cut = random_cut(data.edge_list(), comm.size)
    for owner in (cut.owner, np.zeros_like(cut.owner)):  # the second rank owns nothing
        given = data, comm, replace(cut, owner=owner)
        kept, again = (losses(dist_graph(*given, dtype=dtype), name, remat=remat) for remat in (False, True))
        assert kept == again, owner.max()


@pytest.mark.mpi(1)
def test_the_number_of_the_next_mask_is_as_without_rematerialisation(comm):
    """Backward counts the draws of each layer anew; what is drawn next must not repeat one of them."""
    graph = whole_graph(random_graph(5))
    network = build_model(ModelConfig("gat", 8, 3, dropout=0.5, remat=True), graph.num_feats, graph.num_classes)
    out = network.to(graph.dtype)(graph, graph.feats)
    draws = graph.random_keys.draws()
    out.sum().backward()
    assert graph.random_keys.draws() == draws


@pytest.mark.mpi(1)
def test_rematerialisation_needs_exact_exchanges(comm):
    graph = dist_graph(random_graph(5), comm, algorithm="cd-1")
    with pytest.raises(ValueError, match="cd-0"):
        losses(graph, "gat", remat=True)


@pytest.mark.mpi(2)
@pytest.mark.parametrize("name", ["sage", "gcn", "gat"])
def test_sparse_input_trains_as_dense(comm, name):
    data = random_graph(6, num_feats=50)
    data.feats = np.where(np.random.default_rng(0).random(data.feats.shape) < 0.04, data.feats, 0).astype(np.float32)
    dense = losses(dist_graph(data, comm), name)
    data.feats = sparse.csr_matrix(data.feats)
    graph = dist_graph(data, comm, sparse_feats=True)
    assert isinstance(graph.feats, SparseRows)
    np.testing.assert_allclose(losses(graph, name), dense, rtol=1e-10)  # float64 sums in another order
