"""A partition book that DGL wrote is read, checked against DGL itself."""

import json

import numpy as np
import pytest

from distgnn.datasets import GraphData
from distgnn.errors import DistGNNError, InputError
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
    with pytest.raises(InputError, match="no partition book"):
        read_dgl_cut(tmp_path, edges)
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
