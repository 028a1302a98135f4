"""Planetoid's files give the graph that PyG reads from them; a pickle of anything but arrays is refused."""

import os
import pickle
from collections import defaultdict

import numpy as np
import pytest
import scipy.sparse
from fuzzing import no_hang

from distgnn.datasets import load_graph
from distgnn.errors import GraphFormatError, InputError

# Vertices 0 to 5 are known, 6 to 9 are tested, 8 has no file; 0 and 1 train.
TEST = [9, 6, 7]


def write(folder, name="citeseer", **changes):
    feats = scipy.sparse.csr_matrix(np.arange(12, dtype=np.float32).reshape(6, 2))
    labels = np.eye(3, dtype=np.int32)[[0, 1, 2, 0, 1, 2]]
    adjacency = defaultdict(list, {node: [] for node in range(10)})
    for u, v in [(0, 1), (1, 0), (1, 0), (2, 2), (9, 3), (3, 9)]:
        adjacency[u].append(v)
    objects = {"allx": feats, "x": feats[:2], "tx": scipy.sparse.csr_matrix([[90.0, 9], [60, 6], [70, 7]])}
    objects |= {"ally": labels, "y": labels[:2], "ty": np.eye(3, dtype=np.int32)[[2, 0, 1]], "graph": adjacency}
    folder.mkdir(exist_ok=True)
    for kind, value in (objects | changes).items():
        (folder / f"ind.{name}.{kind}").write_bytes(value if isinstance(value, bytes) else pickle.dumps(value, 2))
    (folder / f"ind.{name}.test.index").write_text("".join(f"{node}\n" for node in TEST))
    return folder


def test_the_graph(tmp_path):
    graph = load_graph(write(tmp_path / "raw"))
    assert (graph.name, graph.num_nodes, graph.directed) == ("citeseer", 10, False)
    assert graph.edges.tolist() == [[0, 1], [3, 9]]
    assert graph.feats.toarray()[6:].tolist() == [[60, 6], [70, 7], [0, 0], [90, 9]]
    assert graph.labels.tolist() == [0, 1, 2, 0, 1, 2, 0, 1, -1, 2]
    assert (graph.train.tolist(), graph.test.tolist()) == ([0, 1], [6, 7, 9])


class Harmful:
    def __reduce__(self):
        return os.system, ("touch harmed",)


@pytest.mark.parametrize("kind", ["allx", "ally", "graph"])
def test_a_pickle_that_runs_something_is_refused_before_it_runs(kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(GraphFormatError, match=rf"ind\.citeseer\.{kind}: damaged"):
        load_graph(write(tmp_path / "raw", **{kind: Harmful()}))
    assert not (tmp_path / "harmed").exists()


def test_a_matrix_that_points_outside_itself_is_refused(tmp_path):
    matrix = scipy.sparse.csr_matrix(np.eye(6, 2, dtype=np.float32))
    matrix.indices[0] = 1 << 20
    with pytest.raises(GraphFormatError, match="allx: damaged"):
        load_graph(write(tmp_path / "raw", allx=matrix))


@pytest.mark.parametrize("damage", [b"", b"\x80\x02", b"(((", pickle.dumps([1, 2], 2), pickle.dumps({"a": 3}, 2)])
@pytest.mark.parametrize("kind", ["allx", "ally", "graph"])
def test_damage_is_named(kind, damage, tmp_path):
    with pytest.raises(GraphFormatError, match=rf"ind\.citeseer\.{kind}"):
        load_graph(write(tmp_path / "raw", **{kind: damage}))


def test_a_pickle_that_asks_for_memory_is_refused(tmp_path):
    """A few bytes: a place of 32 GB in the pickle's own memory; an array of a size; one list a million times over."""
    place = b"\x80\x02}r" + b"\xff\xff\xff\xff" + b"."
    array = b"cnumpy\nndarray\n(I99999999999\ntR."
    many = [7] * 500
    for content in (place, array, pickle.dumps({node: many for node in range(500)}, 2)):
        with no_hang(), pytest.raises(GraphFormatError, match="graph: damaged"):
            load_graph(write(tmp_path / "raw", graph=content))


def test_what_a_pickle_says_of_the_insides_of_numbers_is_not_believed(tmp_path):
    """A type of numbers that are said to be objects: numpy would take each for an address."""
    labels = np.eye(3, dtype=np.int32)[[0, 1, 2, 0, 1, 2]]
    honest = pickle.dumps(labels, 2)
    forged = honest.replace(b"J\xff\xff\xff\xffK\x00t", b"J\xff\xff\xff\xffK\x3ft")
    assert forged != honest
    assert load_graph(write(tmp_path / "raw", ally=forged)).labels[:6].tolist() == [0, 1, 2, 0, 1, 2]


def test_a_missing_file_and_a_wrong_index(tmp_path):
    folder = write(tmp_path / "raw")
    (folder / "ind.citeseer.test.index").write_text(f"6\n{10**30}\n7\n")
    with pytest.raises(GraphFormatError, match=r"test\.index: damaged"):
        load_graph(folder)
    (folder / "ind.citeseer.test.index").write_text("6\n6\n7\n")
    with pytest.raises(GraphFormatError, match="3 different vertices from 6 on"):
        load_graph(folder)
    (folder / "ind.citeseer.ty").unlink()
    with pytest.raises(InputError, match="ty: no such file"):
        load_graph(folder)
