"""The text that asks for a generated graph, and `rmat:`: sizes, skewed degrees, seeds, wrong options."""

import numpy as np
import pytest

from distgnn.datasets import load_graph
from distgnn.datasets.generators.generator_spec import _draw_chunk
from distgnn.errors import InputError


def test_rmat_is_the_size_asked_for():
    graph = load_graph("rmat:scale=10,edge_factor=8,feats=5,classes=3,seed=1")
    assert (graph.num_nodes, graph.num_edges, graph.num_feats, graph.num_classes) == (1024, 8192, 5, 3)
    assert not graph.directed
    assert sum(len(ids) for ids in (graph.train, graph.valid, graph.test)) == 1024
    degrees = graph.edge_list().in_degrees()
    assert degrees.max() > 20 * np.median(degrees)
    # Ids are shuffled: the hubs are not the first vertices.
    assert np.argsort(degrees)[-20:].min() < 900 and np.argsort(degrees)[-20:].max() > 200


def test_rmat_quadrants_have_their_shares():
    sources, targets = _draw_chunk(1, 400_000, np.random.SeedSequence(0))
    shares = np.bincount(2 * sources + targets, minlength=4) / 400_000
    # Five standard deviations of a share of 400,000 draws.
    assert np.allclose(shares, [0.57, 0.19, 0.19, 0.05], atol=0.004)


@pytest.mark.parametrize("spec", ["rmat:scale=12,feats=3", "communities:nodes=3000,feats=3"])
def test_the_seed_decides_everything(spec):
    first, again = load_graph(spec, seed=4), load_graph(f"{spec},seed=4", seed=9)
    other = load_graph(spec, seed=5)
    for field in ("edges", "feats", "labels", "train"):
        assert np.array_equal(getattr(first, field), getattr(again, field)), field
        assert not np.array_equal(getattr(first, field), getattr(other, field)), field


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("rmat:scale=3,colour=1", "unknown option 'colour=1'; known are scale, edge_factor, feats, classes, seed"),
        ("rmat:scale", "unknown option 'scale'"),
        ("rmat:scale=x", "scale must be a whole number, found 'x'"),
        ("rmat:scale=1.5", "scale must be a whole number"),
        ("rmat:scale=99", "scale must be between 1 and 30"),
        ("rmat:scale=3,scale=4", "given twice"),
        ("communities:noise=-1", "noise must be between"),
        ("communities:noise=nan", "noise must be between"),
        ("communities:nodes=1e400", "nodes must be a whole number"),
        ("communities:nodes=0", "nodes must be between"),
        ("communities:nodes=10,communities=20", "needs classes <= communities <= nodes"),
    ],
)
def test_wrong_options_are_refused(spec, message):
    with pytest.raises(InputError, match=message):
        load_graph(spec)


@pytest.mark.parametrize("seed", [1.5, "a", None])
@pytest.mark.parametrize("kind", ["rmat", "communities"])
def test_a_seed_that_is_no_whole_number_is_refused(kind, seed):
    with pytest.raises(InputError, match=f"{kind}: seed must be a whole number, found {seed!r}"):
        load_graph(f"{kind}:", seed=seed)


@pytest.mark.parametrize(
    ("spec", "num_nodes"),
    [
        ("communities:nodes=2,communities=1,classes=1", 2),
        ("rmat:scale=1,edge_factor=1,feats=0,classes=0", 2),
        ("communities:nodes=2e3", 2000),
    ],
)
def test_the_smallest_graphs_and_numbers_written_short(spec, num_nodes):
    graph = load_graph(spec).check()
    assert graph.num_nodes == num_nodes and (graph.feats is None) == (graph.labels is None) == ("feats=0" in spec)
