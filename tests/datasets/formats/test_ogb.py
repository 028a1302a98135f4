import shutil

import numpy as np
import pytest
from valid_graphs import write_papers

from distgnn.datasets import load_graph
from distgnn.errors import GraphFormatError, GraphWarning, InputError

EDGES = [[0, 1], [1, 2], [0, 3], [3, 3]]


def test_arxiv_is_directed_with_one_label(ogb_folder):
    feats = np.arange(8).reshape(4, 2) / 4
    folder = ogb_folder("ogbn_arxiv", "time", EDGES, 5 - 1, [3, 39, 0, 1], node_feat=feats, node_year=[2000] * 4)
    graph = load_graph(str(folder))
    assert graph.directed
    assert graph.name == "ogbn-arxiv"
    assert graph.edges.tolist() == EDGES
    assert graph.num_classes == 40
    assert graph.labels.tolist() == [3, 39, 0, 1]
    assert graph.feats.dtype == np.float32
    assert np.array_equal(graph.feats, feats)
    assert [graph.train.tolist(), graph.valid.tolist(), graph.test.tolist()] == [[0, 1], [2], [3]]


def test_products_holds_each_edge_once(ogb_folder):
    folder = ogb_folder("ogbn_products", "sales_ranking", EDGES, 4, [0, 46, "nan", 1], node_feat=[[1.5], [2], [3], [4]])
    graph = load_graph("ogbn-products", folder.parent)
    assert not graph.directed
    assert graph.edge_list().num_arcs == 7
    assert graph.labels.tolist() == [0, 46, -1, 1]


def test_proteins_feats_are_means_over_edges(ogb_folder):
    labels = np.eye(4, 112, dtype=int) + np.eye(4, 112, 1, dtype=int)
    edge_feats = [[1, 2], [3, 4], [5, 6], [7, 8]]
    folder = ogb_folder("ogbn_proteins", "species", [*EDGES[:3], [2, 1]], 5, np.vstack([labels, labels[:1]]),
                        edge_feat=edge_feats, species=[[3702]] * 5)  # fmt: skip
    graph = load_graph(str(folder))
    assert not graph.directed
    assert graph.multilabel
    assert graph.num_classes == 112
    assert np.array_equal(graph.edge_feats, np.array(edge_feats, dtype=np.float32))
    expected = [[3, 4], [11 / 3, 14 / 3], [5, 6], [5, 6], [0, 0]]
    assert np.allclose(graph.feats, expected)


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
    assert graph.directed
    assert np.array_equal(graph.edges, arrays["edge_index"].T)
    assert np.array_equal(graph.feats, arrays["node_feat"])
    assert graph.num_classes == 172
    assert graph.labels[:5].tolist() == [0, 171, 5, 5, -1]
    assert graph.counts()["unlabelled"] == 2996
    if save is np.savez:
        assert isinstance(graph.edges, np.memmap)
        assert isinstance(graph.feats, np.memmap)
    both = graph.edge_list("both")
    assert both.src.dtype == np.int32


def test_damaged_papers_archives_are_named(tmp_path):
    folder, _ = papers(tmp_path)
    data = folder / "raw" / "data.npz"
    whole = data.read_bytes()
    data.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(GraphFormatError, match=r"data\.npz: damaged"):
        load_graph(str(folder))
    for changes, message in [
        ({"node_feat": None}, "lacks the array 'node_feat'"),
        ({"edge_index": np.zeros((3, 9), dtype=int)}, r"must have shape \[2, E\]"),
        ({"num_nodes_list": np.array([3, 4])}, "must hold one number"),
        ({"edge_index": np.full((2, 9), 3000)}, "row 0 holds a vertex id outside the graph, 3000"),
        ({"node_feat": np.full((3000, 2), np.inf)}, "row 0 holds a value that is NaN or infinite"),
        ({"node_year": np.array([{}])}, "Python objects"),
    ]:
        papers(tmp_path, **changes)
        with pytest.raises(GraphFormatError, match=message):
            load_graph(str(folder))


def test_wrong_tables_are_named(ogb_folder):
    folder = ogb_folder("ogbn_arxiv", "time", EDGES, 4, [0, 1, 2], node_feat=[[1]] * 4)
    with pytest.raises(GraphFormatError, match=r"node-label\.csv\.gz: expected 4 rows, found 3"):
        load_graph(str(folder))
    folder = ogb_folder("ogbn_arxiv", "time", EDGES, 4, [0, 1, 2, 40], node_feat=[[1]] * 4)
    with pytest.raises(GraphFormatError, match=r"node-label\.csv\.gz: row 3 holds label 40; allowed are 0 to 39"):
        load_graph(str(folder))
    for label, message in ((np.inf, "labels: row 3 is infinite"), (0.5, "labels must be whole numbers")):
        folder = ogb_folder("ogbn_arxiv", "time", EDGES, 4, [0, 1, 2, label], node_feat=[[1]] * 4)
        with pytest.raises(GraphFormatError, match=rf"node-label\.csv\.gz: {message}"):
            load_graph(str(folder))
    folder = ogb_folder("ogbn_proteins", "species", EDGES, 4, [[0, 1]] * 4, edge_feat=[[1]] * 4)
    with pytest.raises(GraphFormatError, match="expected 112 labels per vertex"):
        load_graph(str(folder))
    folder = ogb_folder("ogbn_proteins", "species", [[0, 9]], 4, [[0, 1]] * 4, edge_feat=[[1]])
    with pytest.raises(GraphFormatError, match=r"edge\.csv\.gz: line 1 holds a vertex id outside the graph, 9"):
        load_graph(str(folder))


def test_incomplete_downloads_are_named(ogb_folder):
    folder = ogb_folder("ogbn_arxiv", "elsewhere", EDGES, 4, [0, 1, 2, 3], node_feat=[[1]] * 4)
    with pytest.raises(InputError, match="split/time: no such folder"):
        load_graph(str(folder))
    (folder / "raw" / "edge.csv.gz").unlink()
    with pytest.raises(InputError, match=r"edge\.csv\.gz: no such file"):
        load_graph(str(folder))


def test_a_folder_of_any_name_in_this_layout(ogb_folder):
    folder = ogb_folder("roads", "random", EDGES, 4, [0, 1, 2, 3], node_feat=[[1]] * 4)
    graph = load_graph(folder)
    assert (graph.name, graph.directed, graph.num_classes) == ("roads", True, 4)
    assert graph.test.tolist() == [3]
    (folder / "split" / "other").mkdir()
    with pytest.raises(InputError, match="expected one folder of a split, found other, random"):
        load_graph(folder)


def test_a_renamed_folder_of_an_undirected_graph_stays_undirected(ogb_folder):
    folder = ogb_folder("my-products", "sales_ranking", [[0, 1]], 4, [0, 1, 2, 3], node_feat=[[1]] * 4)
    assert load_graph(folder).directed is False


@pytest.mark.slow
def test_arxiv_itself(data_root):
    graph = load_graph("ogbn-arxiv", data_root)
    assert (graph.num_nodes, graph.num_edges, graph.num_classes) == (169343, 1166243, 40)
    assert [len(graph.train), len(graph.valid), len(graph.test)] == [90941, 29799, 48603]
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
    assert (read.train.tolist(), read.valid.tolist(), read.test.tolist()) == ([0, 4], [1], [2, 3])
    assert read.labels.tolist() == [0, 1, 2, 0, 1] and (read.feats is not None) == with_feats


def test_a_split_file_that_lacks_ids_is_named(tmp_path, ogb_folder):
    torch = pytest.importorskip("torch")
    folder = ogb_folder("mine", "random", EDGES, 4, [0] * 4, node_feat=[[1]] * 4)
    torch.save({"train": np.array([0])}, folder / "split" / "random" / "split_dict.pt")
    with pytest.raises(GraphFormatError, match=r"split_dict\.pt: lacks the ids 'valid'; it holds train"):
        load_graph(str(folder))
