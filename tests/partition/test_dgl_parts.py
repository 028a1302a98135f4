"""Cuts that DGL made are read, checked against DGL itself."""

import json

import numpy as np
import pytest

from distgnn.datasets import GraphData
from distgnn.errors import DistGNNError, GraphFormatError, InputError
from distgnn.partition import PartitionBook, cut_edges
from distgnn.partition.dgl_parts import read_dgl_cut
from distgnn.system.other_libraries import import_dgl


@pytest.fixture(scope="module")
def graph():
    rng = np.random.default_rng(1)
    edges = rng.integers(0, 40, (300, 2))
    fields = {split: np.arange(5 * i, 5 * i + 5) for i, split in enumerate(("train", "valid", "test"))}
    return GraphData.from_arrays(
        edges, 43, feats=rng.random((43, 3), dtype=np.float32), labels=rng.integers(0, 4, 43), **fields
    )


def test_a_libra_folder_gives_each_edge_its_part(graph, tmp_path):
    """In whatever order it lists them."""
    edges = graph.edge_list("both")
    cut = cut_edges(edges, 3, "libra")
    for part in range(3):
        ids = np.flatnonzero(cut.edge_part == part)[::-1]
        rows = np.stack([edges.src[ids], edges.dst[ids], np.ones_like(ids)], axis=1)
        np.savetxt(tmp_path / f"community{part}.txt", rows, fmt="%d", delimiter=",")
    np.testing.assert_array_equal(read_dgl_cut(tmp_path, edges).edge_part, cut.edge_part)
    with pytest.raises(InputError, match="not the 300 of this graph"):
        read_dgl_cut(tmp_path, graph.edge_list())
    with pytest.raises(InputError, match="neither a partition book"):
        read_dgl_cut(tmp_path.parent, edges)


@pytest.mark.filterwarnings("ignore")  # DGL leaves files open
def test_reads_what_dgls_libra_wrote(graph, tmp_path, capfd):
    dgl = import_dgl()
    from dgl.distgnn.partition import partition_graph

    partition_graph(2, graph.to_dgl().long(), str(tmp_path))
    capfd.readouterr()
    edges = graph.edge_list()
    cut = read_dgl_cut(tmp_path / "2Communities", edges).check(edges)
    for part in range(2):
        theirs = dgl.load_graphs(str(tmp_path / "2Communities" / f"part{part}" / "graph.dgl"))[0][0]
        assert theirs.num_edges() == np.count_nonzero(cut.edge_part == part)
        ends = np.concatenate([edges.src[cut.edge_part == part], edges.dst[cut.edge_part == part]])
        assert theirs.num_nodes() == len(np.unique(ends))


@pytest.mark.filterwarnings("ignore")
def test_reads_a_book_that_dgl_wrote(graph, tmp_path):
    dgl = import_dgl()
    whole = graph.to_dgl().long()
    new_ids, _ = dgl.distributed.partition_graph(
        whole, "small", 3, str(tmp_path), part_method="random", return_mapping=True
    )
    edges = graph.edge_list()
    with pytest.raises(InputError, match="DGL does not keep the old ids"):
        read_dgl_cut(tmp_path / "small.json", edges)
    np.save(tmp_path / "node_orig_id.npy", new_ids.numpy())
    cut = read_dgl_cut(tmp_path / "small.json", edges).check(edges)
    ranges = json.loads((tmp_path / "small.json").read_text())["node_map"]["_N"]
    for part, (begin, end) in enumerate(ranges):
        assert set(np.flatnonzero(cut.owner == part)) == set(new_ids[begin:end].tolist())
    np.testing.assert_array_equal(cut.edge_part, cut.owner[edges.dst])
    cover = read_dgl_cut(tmp_path / "small.json", edges, "cover")
    np.testing.assert_array_equal(cover.owner, cut.owner)
    assert PartitionBook(edges, cover).exchange_rows < PartitionBook(edges, cut).exchange_rows
    with pytest.raises(InputError, match="unknown sides 'source'"):
        read_dgl_cut(tmp_path / "small.json", edges, "source")
    (tmp_path / "node_orig_id.npy").unlink()
    for part, (begin, end) in enumerate(ranges):  # as DGL's dispatch of a graph in chunks writes them
        dgl.data.utils.save_tensors(str(tmp_path / f"part{part}" / "orig_nids.dgl"), {"_N": new_ids[begin:end]})
    np.testing.assert_array_equal(read_dgl_cut(tmp_path / "small.json", edges).owner, cut.owner)
    torch = pytest.importorskip("torch")
    for content in ({"_N": new_ids}, new_ids):  # as GraphStorm does
        torch.save(content, tmp_path / "node_mapping.pt")
        np.testing.assert_array_equal(read_dgl_cut(tmp_path / "small.json", edges).owner, cut.owner)
    torch.save({"a": new_ids, "b": new_ids}, tmp_path / "node_mapping.pt")
    with pytest.raises(DistGNNError, match=r"node_mapping\.pt: expected the ids of one vertex type, found a, b"):
        read_dgl_cut(tmp_path / "small.json", edges)


@pytest.mark.parametrize(
    "change",
    [
        {"node_map": None},
        {"node_map": {"_N": [[0, 20], [20, 10**400]]}},
        {"node_map": {"_N": [[0, 20], [19, 43]]}},
        {"node_map": {"_N": [["a", "b"], [20, 43]]}},
        {"node_map": [[0, 43]]},
        {"num_parts": 10**400},
        {"num_parts": True},
    ],
    ids=str,
)
def test_a_forged_book_is_refused(graph, change, tmp_path):
    book = {"num_parts": 2, "num_nodes": 43, "node_map": {"_N": [[0, 20], [20, 43]]}}
    np.save(tmp_path / "node_orig_id.npy", np.arange(43))
    (tmp_path / "g.json").write_text(json.dumps(book))
    edges = graph.edge_list()
    assert np.bincount(read_dgl_cut(tmp_path / "g.json", edges).owner).tolist() == [20, 23]
    (tmp_path / "g.json").write_text(json.dumps(book | change))
    with pytest.raises(DistGNNError, match=r"g\.json: "):
        read_dgl_cut(tmp_path / "g.json", edges)


def test_a_forged_libra_folder_is_refused(graph, tmp_path):
    edges = graph.edge_list()
    rows = np.stack([edges.src, edges.dst, np.ones_like(edges.src)], axis=1).astype(float)
    outside = rows.copy()
    outside[0, :2] += (-1, 43) if rows[0, 0] else (1, -43)  # the same number by row, another edge
    for table in (rows[:, :1], outside, np.where(rows == rows[0, 0], np.nan, rows), rows * 1e300):
        np.savetxt(tmp_path / "community0.txt", table, delimiter=",")
        with pytest.raises(GraphFormatError, match="expected lines of source, target and weight"):
            read_dgl_cut(tmp_path, edges)
