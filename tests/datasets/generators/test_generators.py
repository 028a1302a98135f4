import numpy as np
import pytest

from distgnn.datasets import load_graph
from distgnn.errors import InputError
from distgnn.fitting.source import content_of_graph


def test_rmat_is_the_size_asked_for():
    graph = load_graph("rmat:scale=10,edge_factor=8,feats=5,classes=3,seed=1")
    assert (graph.num_nodes, graph.num_edges, graph.num_feats, graph.num_classes) == (1024, 8192, 5, 3)
    assert not graph.directed
    assert sum(len(ids) for ids in (graph.train, graph.valid, graph.test)) == 1024
    degrees = graph.edge_list().in_degrees()
    assert degrees.max() > 20 * np.median(degrees)
    # Ids are shuffled: the hubs are not the first vertices.
    assert np.argsort(degrees)[-20:].min() < 900
    assert np.argsort(degrees)[-20:].max() > 200


def test_rmat_without_feats_and_classes():
    graph = load_graph("rmat:scale=4,feats=0,classes=0")
    assert graph.feats is None
    assert graph.labels is None


def test_rmat_quadrants_have_their_shares():
    from distgnn.datasets.generators.rmat import _draw_chunk

    sources, targets = _draw_chunk(1, 400_000, np.random.SeedSequence(0))
    shares = np.bincount(2 * sources + targets, minlength=4) / 400_000
    # Five standard deviations of a share of 400,000 draws.
    assert np.allclose(shares, [0.57, 0.19, 0.19, 0.05], atol=0.004)


def test_a_typed_graph_has_the_shape_of_ogbn_mag_and_classes_that_neighbours_tell():
    graph = load_graph("typed:nodes=4000,others=8,reverse=0,noise=3,mixing=0.3")
    assert graph.types == ("author", "field_of_study", "institution", "paper") and sum(graph.type_counts) == 4000
    assert {kind: columns["feats"].shape[1] for kind, columns in graph.typed.items() if "feats" in columns} == {
        "author": 8, "field_of_study": 8, "paper": 64,
    }  # fmt: skip
    assert len(graph.relations) == 4 and 0.75 < graph.num_edges / 40000 <= 1  # doubles are taken out
    both = load_graph("typed:nodes=4000,others=8,noise=3,mixing=0.3")
    assert both.relations[4:] == tuple((target, f"rev_{name}", source) for source, name, target in graph.relations)
    assert both.edges.tolist() == [*graph.edges.tolist(), *graph.edges[:, ::-1].tolist()]
    sources, targets = graph.edges[graph.edge_types == graph.relations.index(("paper", "cites", "paper"))].T
    same = np.mean(graph.labels[sources] == graph.labels[targets])  # 1 - mixing, and a tenth of the others by chance
    assert abs(same - 0.73) < 0.05 and (sources != targets).all()
    seeds = [content_of_graph(load_graph(*one)) for one in (("typed:seed=4",), ("typed:", None, 4), ("typed:seed=5",))]
    assert seeds[0] == seeds[1] != seeds[2]


@pytest.mark.parametrize("spec", ["rmat:scale=12,feats=3", "communities:nodes=3000,feats=3"])
def test_the_seed_decides_everything(spec):
    first, again = load_graph(spec, seed=4), load_graph(f"{spec},seed=4", seed=9)
    other = load_graph(spec, seed=5)
    for field in ("edges", "feats", "labels", "train"):
        assert np.array_equal(getattr(first, field), getattr(again, field)), field
        assert not np.array_equal(getattr(first, field), getattr(other, field)), field


def test_communities_are_simple_and_without_isolated_vertices():
    counts = load_graph("communities:nodes=5000").counts()
    assert [counts[name] for name in ("duplicates", "self_loops", "isolated", "no_split")] == [0] * 4
    assert counts["train"] == 1000
    assert 5000 * 9 / 2 < counts["num_edges"] < 5000 * 13 / 2


def class_accuracy(feats, graph) -> float:
    """Test accuracy of the nearest mean of the training rows."""
    means = np.stack([feats[graph.train][graph.labels[graph.train] == c].mean(0) for c in range(graph.num_classes)])
    distance = (means**2).sum(1) - 2 * feats @ means.T
    return float((distance.argmin(1)[graph.test] == graph.labels[graph.test]).mean())


def test_neighbours_help():
    graph = load_graph("communities:nodes=20000")
    sources, targets, _ = graph.edge_list("stored", "add").arcs()
    mixed = graph.feats
    for _ in range(2):
        gathered = np.zeros_like(mixed)
        np.add.at(gathered, targets, mixed[sources])
        mixed = gathered / np.bincount(targets)[:, None]
    assert 0.5 < class_accuracy(graph.feats, graph) < 0.7
    assert class_accuracy(mixed, graph) > 0.85


def test_communities_have_power_law_degrees_and_stay_together():
    graph = load_graph("communities:nodes=20000,classes=20,communities=20,mixing=0.2")
    degrees = graph.edge_list().in_degrees()
    assert degrees.max() > 15 * np.median(degrees)
    same = graph.labels[graph.edges[:, 0]] == graph.labels[graph.edges[:, 1]]
    assert 0.75 < same.mean() < 0.9


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


def test_whole_numbers_may_be_written_short():
    assert load_graph("communities:nodes=2e3").num_nodes == 2000


@pytest.mark.parametrize("spec", ["communities:nodes=2,communities=1,classes=1", "rmat:scale=1,edge_factor=1"])
def test_the_smallest_graphs(spec):
    assert load_graph(spec).check().num_nodes == 2
