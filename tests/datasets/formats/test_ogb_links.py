"""OGB's link-prediction layouts, generated: each as `torch.save` and `ogb` lay it out."""

import io
import pickle

import numpy as np
import pytest
import torch
from valid_graphs import write_ogb, write_tables

from distgnn.datasets import load_graph
from distgnn.datasets.formats.torch_file import read_torch_arrays
from distgnn.errors import GraphFormatError, InputError

EDGES = [[0, 1], [1, 2], [0, 3], [3, 4]]
PAIRS = {"train": {"edge": np.array(EDGES)}}
PAIRS |= {name: {"edge": np.array([[0, 4]]), "edge_neg": np.array([[2, 4], [1, 3]])} for name in ("valid", "test")}


def save(path, content, **options) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    torch.save(content, path, **{"pickle_protocol": 4} | options)


def link_folder(tmp_path, name: str, split: str, splits=PAIRS, **tables):
    write_ogb(tmp_path / name, split, EDGES, 5, splits={})
    write_tables(tmp_path / name / "raw", tables)
    for part, content in splits.items():
        save(tmp_path / name / "split" / split / f"{part}.pt", content)
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
    assert graph.train_edges.tolist() == EDGES and graph.test_edges.tolist() == [[0, 4]]
    assert graph.valid_negatives.tolist() == [[2, 4], [1, 3]]
    if "collab" in name:
        assert graph.edge_weight.tolist() == [1, 2, 3, 4] and graph.num_feats == 2


def test_citation2_has_negatives_for_each_source(tmp_path):
    splits = {"train": {"source_node": np.array([0, 1]), "target_node": np.array([1, 2])}}
    for name in ("valid", "test"):
        pairs = {"source_node": np.array([4]), "target_node": np.array([0]), "target_node_neg": np.array([[1, 2, 3]])}
        splits[name] = pairs
    graph = load_graph(link_folder(tmp_path, "ogbl_citation2", "time", splits))
    assert graph.directed and graph.test_edges.tolist() == [[4, 0]]
    assert graph.test_negative_targets.tolist() == [[1, 2, 3]]


def test_vessel_is_binary(tmp_path):
    raw = tmp_path / "ogbl_vessel" / "raw"
    raw.mkdir(parents=True)
    arrays = {"edge_index": np.array(EDGES).T, "num_nodes_list": np.array([5]), "num_edges_list": np.array([4])}
    np.savez(raw / "data.npz", **arrays, node_feat=np.ones((5, 3)), edge_feat=np.ones((4, 2)))
    for name, content in PAIRS.items():
        tensors = {key: torch.from_numpy(array) for key, array in content.items()}  # as a later ogb may have them
        save(raw.parent / "split" / "spatial" / f"{name}.pt", tensors)
    graph = load_graph(raw.parent)
    assert (graph.num_feats, graph.num_edge_feats, graph.directed) == (3, 2, False)
    assert graph.test_negatives.tolist() == [[2, 4], [1, 3]]


@pytest.mark.parametrize("options", [{}, {"pickle_protocol": 2}, {"_use_new_zipfile_serialization": False}])
def test_every_form_of_torch_save(tmp_path, options):
    arrays = {"edge": np.arange(6).reshape(3, 2), "weight": np.ones((2, 1), np.float32), "year": np.arange(0)}
    save(tmp_path / "x.pt", arrays | {"about": "text"}, **options)
    found = read_torch_arrays(tmp_path / "x.pt")
    assert found.keys() == arrays.keys()
    for name, array in arrays.items():
        assert np.array_equal(found[name], array) and found[name].dtype == array.dtype
    columns = torch.arange(12).view(3, 4)[:, ::2]
    save(tmp_path / "y.pt", {"edge": columns})
    assert np.array_equal(read_torch_arrays(tmp_path / "y.pt")["edge"], columns.numpy())


class Runs:
    def __reduce__(self):
        return exec, ("raise SystemExit('ran')",)


def test_nothing_in_a_file_is_run(tmp_path):
    for legacy in (True, False):
        save(tmp_path / "x.pt", {"edge": Runs()}, _use_new_zipfile_serialization=not legacy)
        with pytest.raises(GraphFormatError, match=r"x\.pt: damaged .*builtins\.exec, which no array needs"):
            read_torch_arrays(tmp_path / "x.pt")
    stream = io.BytesIO()
    pickle.dump([1, 2], stream)
    (tmp_path / "x.pt").write_bytes(stream.getvalue() * 4)
    with pytest.raises(GraphFormatError, match="expected a dictionary of arrays, found list"):
        read_torch_arrays(tmp_path / "x.pt")


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


def test_an_incomplete_download_is_named(tmp_path):
    folder = link_folder(tmp_path, "ogbl_ddi", "elsewhere")
    with pytest.raises(InputError, match="split/target: no such folder"):
        load_graph(folder)
    (folder / "split" / "elsewhere").rename(folder / "split" / "target")
    (folder / "split" / "target" / "valid.pt").unlink()
    with pytest.raises(InputError, match=r"valid\.pt: no such file"):
        load_graph(folder)
