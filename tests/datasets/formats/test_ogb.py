"""OGB's layouts for vertices, for several types of them, and for links, as `torch.save` and `ogb` write them."""

import shutil

import numpy as np
import pytest
import torch
from valid_graphs import write_mag, write_ogb, write_papers, write_tables

from distgnn.datasets import load_graph
from distgnn.errors import DistGNNError, GraphFormatError, GraphWarning, InputError

EDGES = [[0, 1], [1, 2], [0, 3], [3, 3]]


def splits_of(graph):
    return [graph.train.tolist(), graph.valid.tolist(), graph.test.tolist()]


def test_arxiv_is_directed_with_one_label(ogb_folder):
    feats = np.arange(8).reshape(4, 2) / 4
    folder = ogb_folder("ogbn_arxiv", "time", EDGES, 4, [3, 39, 0, 1], node_feat=feats, node_year=[2000] * 4)
    graph = load_graph(str(folder))
    assert (graph.name, graph.directed, graph.edges.tolist()) == ("ogbn-arxiv", True, EDGES)
    assert (graph.num_classes, graph.labels.tolist()) == (40, [3, 39, 0, 1])
    assert graph.feats.dtype == np.float32 and np.array_equal(graph.feats, feats)
    assert splits_of(graph) == [[0, 1], [2], [3]]


def test_products_holds_each_edge_once(ogb_folder):
    folder = ogb_folder("ogbn_products", "sales_ranking", EDGES, 4, [0, 46, "nan", 1], node_feat=[[1.5], [2], [3], [4]])
    graph = load_graph("ogbn-products", folder.parent)
    assert not graph.directed and graph.edge_list().num_arcs == 7
    assert graph.labels.tolist() == [0, 46, -1, 1]


def test_proteins_feats_are_means_over_edges(ogb_folder):
    labels = np.eye(4, 112, dtype=int) + np.eye(4, 112, 1, dtype=int)
    edge_feats, edges = [[1, 2], [3, 4], [5, 6], [7, 8]], [*EDGES[:3], [2, 1]]
    tables = {"edge_feat": edge_feats, "species": [[3702]] * 5}
    graph = load_graph(str(ogb_folder("ogbn_proteins", "species", edges, 5, np.vstack([labels, labels[:1]]), **tables)))
    assert (graph.directed, graph.multilabel, graph.num_classes) == (False, True, 112)
    assert np.array_equal(graph.edge_feats, np.array(edge_feats, dtype=np.float32))
    assert np.allclose(graph.feats, [[3, 4], [11 / 3, 14 / 3], [5, 6], [5, 6], [0, 0]])


def papers(tmp_path, save=np.savez, **changes):
    """The binary layout: 3,000 vertices, so that the arrays are large enough to be mapped."""
    rng = np.random.default_rng(0)
    labels = np.full((3000, 1), np.nan, dtype=np.float32)
    labels[:4, 0] = [0, 171, 5, 5]
    arrays = {
        "edge_index": rng.integers(0, 3000, (2, 9000)),
        "num_nodes_list": np.array([3000]),
        "num_edges_list": np.array([9000]),
        "node_feat": rng.standard_normal((3000, 32)).astype(np.float16),
        "node_year": np.full((3000, 1), 2000),
    } | changes
    shutil.rmtree(tmp_path / "ogbn_papers100M", ignore_errors=True)
    splits = {"train": [0, 1], "valid": [2], "test": [3]}
    return write_papers(tmp_path / "ogbn_papers100M", labels, splits, save, **arrays), arrays


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_papers_binary_form(tmp_path, save):
    _, arrays = papers(tmp_path, save)
    graph = load_graph("ogbn-papers100M", tmp_path)
    assert graph.directed and np.array_equal(graph.edges, arrays["edge_index"].T)
    assert np.array_equal(graph.feats, arrays["node_feat"])
    assert (graph.num_classes, graph.labels[:5].tolist()) == (172, [0, 171, 5, 5, -1])
    assert graph.counts()["unlabelled"] == 2996
    if save is np.savez:
        assert isinstance(graph.edges, np.memmap) and isinstance(graph.feats, np.memmap)
    assert graph.edge_list("both").src.dtype == np.int32


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"node_feat": None}, "lacks the array 'node_feat'"),
        ({"edge_index": np.zeros((3, 9), dtype=int)}, r"must have shape \[2, E\]"),
        ({"num_nodes_list": np.array([3, 4])}, "must hold one number"),
        ({"edge_index": np.full((2, 9), 3000)}, "row 0 holds a vertex id outside the graph, 3000"),
        ({"node_feat": np.full((3000, 2), np.inf)}, "row 0 holds a value that is NaN or infinite"),
        ({"node_year": np.array([{}])}, "Python objects"),
    ],
)
def test_damaged_papers_archives_are_named(changes, message, tmp_path):
    folder, _ = papers(tmp_path, **changes)
    with pytest.raises(GraphFormatError, match=message):
        load_graph(str(folder))
    data = folder / "raw" / "data.npz"
    data.write_bytes(data.read_bytes()[: data.stat().st_size // 2])
    with pytest.raises(GraphFormatError, match=r"data\.npz: damaged"):
        load_graph(str(folder))


ARXIV, PROTEINS = ("ogbn_arxiv", "time"), ("ogbn_proteins", "species")


@pytest.mark.parametrize(
    ("place", "edges", "labels", "table", "message"),
    [
        (ARXIV, EDGES, [0, 1, 2], "node_feat", r"node-label\.csv\.gz: expected 4 rows, found 3"),
        (ARXIV, EDGES, [0, 1, 2, 40], "node_feat", r"node-label\.csv\.gz: row 3 holds label 40; allowed are 0 to 39"),
        (ARXIV, EDGES, [0, 1, 2, np.inf], "node_feat", r"node-label\.csv\.gz: labels: row 3 is infinite"),
        (ARXIV, EDGES, [0, 1, 2, 0.5], "node_feat", r"node-label\.csv\.gz: labels must be whole numbers"),
        (PROTEINS, EDGES, [[0, 1]] * 4, "edge_feat", "expected 112 labels per vertex"),
        (
            PROTEINS,
            [[0, 9]],
            [[0, 1]] * 4,
            "edge_feat",
            r"edge\.csv\.gz: line 1 holds a vertex id outside the graph, 9",
        ),
    ],
)
def test_wrong_tables_are_named(place, edges, labels, table, message, ogb_folder):
    rows = 4 if table == "node_feat" else len(edges)
    with pytest.raises(GraphFormatError, match=message):
        load_graph(str(ogb_folder(*place, edges, 4, labels, **{table: [[1]] * rows})))


def test_a_folder_of_any_name_in_this_layout(ogb_folder):
    folder = ogb_folder("roads", "random", EDGES, 4, [0, 1, 2, 3], node_feat=[[1]] * 4)
    graph = load_graph(folder)
    assert (graph.name, graph.directed, graph.num_classes) == ("roads", True, 4)
    assert graph.test.tolist() == [3]
    (folder / "split" / "other").mkdir()
    with pytest.raises(InputError, match="expected one folder of a split, found other, random"):
        load_graph(folder)
    folder = ogb_folder("my-products", "sales_ranking", [[0, 1]], 4, [0, 1, 2, 3], node_feat=[[1]] * 4)
    assert load_graph(folder).directed is False  # by its split


@pytest.mark.slow
def test_arxiv_itself(data_root):
    graph = load_graph("ogbn-arxiv", data_root)
    assert (graph.num_nodes, graph.num_edges, graph.num_classes) == (169343, 1166243, 40)
    assert list(map(len, splits_of(graph))) == [90941, 29799, 48603]
    assert graph.edge_list("both").num_arcs == 2 * (1166243 - 8444)


@pytest.mark.parametrize("with_feats", [True, False])
def test_a_folder_of_ogbs_dataset_saver_is_read(tmp_path, monkeypatch, with_feats, capfd):
    saver = pytest.importorskip("ogb.io").DatasetSaver
    monkeypatch.chdir(tmp_path)
    graph = {"edge_index": np.array([[0, 1, 2], [1, 2, 3]]), "num_nodes": 5, "node_time": np.arange(5)}
    graph |= {"node_feat": np.eye(5, 2, dtype=np.float32)} if with_feats else {}
    made = saver("ogbn-mine", is_hetero=False, version=1, root="made")
    made.save_graph_list([graph])
    made.save_target_labels(np.array([[0], [1], [2], [0], [1]]))
    made.save_split({"train": np.array([0, 4]), "valid": np.array([1]), "test": np.array([2, 3])}, "random")
    with pytest.warns(GraphWarning, match="left out: node_time$"):
        read = load_graph(str(tmp_path / "made_ogbn_mine" / "mine"))
    assert (read.num_nodes, read.edges.tolist()) == (5, [[0, 1], [1, 2], [2, 3]])
    assert splits_of(read) == [[0, 4], [1], [2, 3]]
    assert read.labels.tolist() == [0, 1, 2, 0, 1] and (read.feats is not None) == with_feats


def test_a_split_file_that_lacks_ids_is_named(ogb_folder):
    folder = ogb_folder("mine", "random", EDGES, 4, [0] * 4, node_feat=[[1]] * 4)
    torch.save({"train": np.array([0])}, folder / "split" / "random" / "split_dict.pt")
    with pytest.raises(GraphFormatError, match=r"split_dict\.pt: lacks the ids 'valid'; it holds train"):
        load_graph(str(folder))


FIRST = {"author": 0, "field_of_study": 3, "institution": 5, "paper": 6}
TYPED_EDGES = {
    ("author", "affiliated_with", "institution"): [[0, 0], [2, 0]],
    ("author", "writes", "paper"): [[0, 1], [1, 1], [2, 3]],
    ("paper", "cites", "paper"): [[0, 1], [1, 0], [3, 2]],
    ("paper", "has_topic", "field_of_study"): [[0, 1], [2, 0]],
}
FEATS = np.arange(8).reshape(4, 2) / 4


@pytest.fixture
def mag(tmp_path):
    """A small folder of ogbn-mag's layout, with its types not in order."""
    sizes = {"paper": 4, "author": 3, "institution": 1, "field_of_study": 2}
    splits = {"train": [0, 3], "valid": [1], "test": [2]}
    return write_mag(tmp_path / "ogbn_mag", sizes, TYPED_EDGES, FEATS, [5, 348, 0, 7], splits)


def test_types_and_relations_are_in_the_order_of_their_names(mag):
    graph = load_graph("ogbn-mag", mag.parent)
    assert (graph.num_nodes, graph.directed, graph.num_classes) == (10, True, 349)
    assert (graph.types, graph.type_counts) == (tuple(FIRST), (3, 2, 1, 4)) and graph.relations == tuple(TYPED_EDGES)
    expected = [[FIRST[h] + u, FIRST[t] + v] for (h, _, t), edges in TYPED_EDGES.items() for u, v in edges]
    assert graph.edges.tolist() == expected
    assert graph.edge_types.tolist() == [0] * 2 + [1] * 3 + [2] * 3 + [3] * 2
    assert graph.typed.keys() == {"paper"}
    np.testing.assert_array_equal(graph.typed["paper"]["feats"], FEATS)
    assert graph.labels.tolist() == [-1] * 6 + [5, 348, 0, 7]
    assert splits_of(graph) == [[6, 9], [7], [8]]


def test_both_directions_keep_reciprocal_edges_and_add_reverse_relations(mag):
    graph = load_graph(str(mag))
    assert graph.edge_list("both").num_arcs == 20
    whole = graph.to_dgl(graph.edge_list("both"))
    assert [column.tolist() for column in whole.edges(etype="rev_cites")] == [[1, 0, 2], [0, 1, 3]]
    assert [column.tolist() for column in whole.edges(etype="rev_writes")] == [[1, 1, 3], [0, 1, 2]]


WRITES = "raw/relations/author___writes___paper"


@pytest.mark.parametrize(
    ("name", "rows", "message"),
    [
        ("raw/num-node-dict", [["paper", "author"], [4, "x"]], "names of vertex types and one line of counts"),
        ("raw/triplet-type-list", [["author", "writes"]], "expected 3 words on every line"),
        ("raw/triplet-type-list", [["poet", "writes", "paper"]], "'poet' is no vertex type"),
        (f"{WRITES}/edge", [[0, 1], [3, 1], [2, 3]], "row 1 has source 3, beyond type author"),
        (f"{WRITES}/num-edge-list", [[3], [4]], "expected one number, found 2"),
        ("raw/node-label/paper/node-label", [["5"], ["inf"], ["0"], ["7"]], "gz: labels: row 1 is infinite"),
        ("raw/node-feat/author/node-feat", [[1], [2]], "row"),
        ("split/time/nodetype-has-split", [["paper"]], "one line of True and False"),
    ],
)
def test_what_is_wrong_is_named(mag, name, rows, message):
    write_tables(mag, {name: rows})
    with pytest.raises(GraphFormatError, match=message) as caught:
        load_graph(str(mag))
    assert name.rsplit("/", 1)[1] in str(caught.value)


def test_what_is_cut_off_is_named(mag):
    path = mag / "raw" / "num-node-dict.csv.gz"
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(GraphFormatError, match="num-node-dict"):
        load_graph(str(mag))


LINKED = [[0, 1], [1, 2], [0, 3], [3, 4]]
PAIRS = {"train": {"edge": np.array(LINKED)}}
PAIRS |= {name: {"edge": np.array([[0, 4]]), "edge_neg": np.array([[2, 4], [1, 3]])} for name in ("valid", "test")}


def save_splits(place, splits=PAIRS) -> None:
    place.mkdir(parents=True, exist_ok=True)
    for part, content in splits.items():
        torch.save(content, place / f"{part}.pt", pickle_protocol=4)


def link_folder(tmp_path, name: str, split: str, splits=PAIRS, **tables):
    write_ogb(tmp_path / name, split, LINKED, 5, splits={})
    write_tables(tmp_path / name / "raw", tables)
    save_splits(tmp_path / name / "split" / split, splits)
    return tmp_path / name


@pytest.mark.parametrize(
    ("folder", "split", "name", "held_out"),
    [
        ("ogbl_collab", "time", "ogbl-collab", False),
        ("ppassoc", "throughput", "ogbl-ppa", True),
        ("ogbl-ddi", "target", "ogbl-ddi", True),
    ],
)
def test_pairs_with_negatives_for_all(tmp_path, folder, split, name, held_out):
    tables = {"edge_weight": [1, 2, 3, 4], "edge_year": [2000] * 4, "node-feat": [[1, 2]] * 5}
    graph = load_graph(link_folder(tmp_path, folder, split, **(tables if "collab" in name else {})))
    assert (graph.name, graph.directed, graph.held_out, graph.num_edges) == (name, False, held_out, 4)
    assert graph.train_edges.tolist() == LINKED and graph.test_edges.tolist() == [[0, 4]]
    assert graph.valid_negatives.tolist() == [[2, 4], [1, 3]]
    if "collab" in name:
        assert graph.edge_weight.tolist() == [1, 2, 3, 4] and graph.num_feats == 2


def test_citation2_has_negatives_for_each_source(tmp_path):
    pairs = {"source_node": np.array([4]), "target_node": np.array([0]), "target_node_neg": np.array([[1, 2, 3]])}
    train = {"source_node": np.array([0, 1]), "target_node": np.array([1, 2])}
    splits = {"train": train, "valid": pairs, "test": pairs}
    graph = load_graph(link_folder(tmp_path, "ogbl_citation2", "time", splits))
    assert graph.directed and graph.test_edges.tolist() == [[4, 0]]
    assert graph.test_negative_targets.tolist() == [[1, 2, 3]]


def test_vessel_is_binary(tmp_path):
    raw = tmp_path / "ogbl_vessel" / "raw"
    # Tensors, as a later ogb may have them
    tensors = {part: {key: torch.from_numpy(array) for key, array in one.items()} for part, one in PAIRS.items()}
    save_splits(raw.parent / "split" / "spatial", tensors)
    raw.mkdir()
    arrays = {"edge_index": np.array(LINKED).T, "num_nodes_list": np.array([5]), "num_edges_list": np.array([4])}
    np.savez(raw / "data.npz", **arrays, node_feat=np.ones((5, 3)), edge_feat=np.ones((4, 2)))
    graph = load_graph(raw.parent)
    assert (graph.num_feats, graph.num_edge_feats, graph.directed) == (3, 2, False)
    assert graph.test_negatives.tolist() == [[2, 4], [1, 3]]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"edge_neg": np.array([[2, -4]])}, r"test\.pt: row 0 holds vertex -4"),
        ({"edge": np.array([[0, 1]])}, r"test\.pt: row 0, the edge 0 - 1, is still an edge"),
        ({"edge": np.array([0, 1])}, r"test\.pt: expected an array 'edge' of 2 dimensions"),
        ({"edge_neg": None}, r"expected an array 'edge_neg' of 2 dimensions, found only edge"),
    ],
)
def test_wrong_splits_are_named(tmp_path, change, says):
    splits = PAIRS | {"test": PAIRS["test"] | change}
    with pytest.raises(GraphFormatError, match=says):
        load_graph(link_folder(tmp_path, "ogbl_ddi", "target", splits))


@pytest.mark.parametrize(
    ("name", "gone"),
    [
        ("ogbn_arxiv", "raw/edge.csv.gz"),
        ("ogbn_arxiv", "split/time"),
        ("ogbn_mag", "raw/num-node-dict.csv.gz"),
        ("ogbl_ddi", "split/target"),
        ("ogbl_ddi", "split/target/valid.pt"),
    ],
)
def test_an_incomplete_download_is_named(name, gone, mag, tmp_path, ogb_folder):
    ogb_folder("ogbn_arxiv", "time", EDGES, 4, [0, 1, 2, 3], node_feat=[[1]] * 4)
    path = link_folder(tmp_path, "ogbl_ddi", "target").parent / name / gone
    path.rename(path.with_name("elsewhere"))
    with pytest.raises(DistGNNError, match=f"{gone}: no such f"):
        load_graph(tmp_path / name)
