"""From what a user has to a cut: known by its content, read once; what is said of it is said again."""

import gc
import json
import weakref
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

import distgnn as dg
from distgnn.config import CutConfig
from distgnn.errors import InputError
from distgnn.fitting import fit as place
from distgnn.fitting import source
from distgnn.fitting.source import cut_of


def test_the_same_content_is_cut_once(cut, graph, tmp_path):
    again = replace(graph, edges=graph.edges.copy(), name=graph.name)
    assert [cut(one)[0] for one in (graph, again)] == [True, False]
    assert [cut(graph, seed=7)[0], cut(graph, config=CutConfig())[0]] == [False, False]
    other = replace(graph, feats=graph.feats + np.float32(1e-6))
    assert [cut(other)[0], cut(graph, config=CutConfig(method="random"))[0], cut(graph, parts=2)[0]] == [True] * 3
    graph.save(tmp_path / "g")
    assert [cut(tmp_path / "g")[0] for _ in range(2)] == [True, False]
    replace(graph, labels=graph.labels[::-1].copy()).save(tmp_path / "g", overwrite=True)
    assert cut(tmp_path / "g")[0]


def test_labels_that_a_task_needs_are_missed_before_the_cut(cut, graph):
    with (
        pytest.raises(InputError, match="task node needs them"),
        cut_of(replace(graph, labels=None), 1, None, None, 0, task="node"),
    ):
        pass
    assert cut(replace(graph, labels=None))[0]  # it was not cut


def test_facts_that_another_program_kept_are_read_anew(cut, graph, tmp_path, cache):
    graph.save(tmp_path / "g")
    assert cut(tmp_path / "g")[0]
    (file,) = (cache / "graphs").glob("*.json")
    facts = json.loads(file.read_text())
    for other in (facts | {"of_tomorrow": 1}, {"name": "g", "has_values": False}):
        file.write_text(json.dumps(other))
        assert not cut(tmp_path / "g")[0] and json.loads(file.read_text()) == facts


def test_what_is_said_of_a_graph_is_said_again(cut, arrays):
    first, again = cut(arrays, seed=2), cut(arrays, seed=2)
    assert (first[0], again[0], cut(arrays, seed=3)[0]) == (True, False, True)
    for _, said in (first, again):
        assert "random split by seed 2, stratified by class: train 36, valid 12, test 12" in said
    matrix = sp.coo_matrix((np.ones(400), tuple(arrays["edge_index"])), shape=(60, 60))
    sparse = {"adjacency": matrix, "x": arrays["x"], "y": arrays["y"], "colour": 1}
    with pytest.raises(InputError, match="unknown field of a graph: 'colour'"):
        cut(sparse)


def test_files_behind_links_are_content(cut, graph, tmp_path):
    """A link to a file, to a folder, one within another, and one that leads back."""
    real, linked = graph.save(tmp_path / "real"), tmp_path / "linked"
    (tmp_path / "far" / "deep").mkdir(parents=True)
    linked.mkdir()
    for file in real.iterdir():
        (linked / file.name).symlink_to(file)
    (linked / "more").symlink_to(tmp_path / "far")
    (tmp_path / "far" / "deeper").symlink_to(tmp_path / "far" / "deep")
    (tmp_path / "far" / "back").symlink_to(linked)
    seen = [source.content_of_source(str(linked), None, 0)]
    for file in (tmp_path / "far" / "one", tmp_path / "far" / "deep" / "two"):
        for content in ("1", "2"):
            file.write_text(content)
            seen.append(source.content_of_source(str(linked), None, 0))
    replace(graph, labels=graph.labels[::-1].copy()).save(real, overwrite=True)
    seen.append(source.content_of_source(str(linked), None, 0))
    assert len(set(seen)) == len(seen)


def test_a_graph_is_read_once_and_is_gone_while_ranks_train(graph, tmp_path, monkeypatch):
    """Also what was made of arrays: only the caller's own stay."""
    graph.save(tmp_path / "graph")
    seen, plain, call = [], source.load_graph, place.call_on_ranks
    monkeypatch.setattr("distgnn.partition.pipeline.load_graph", lambda data, *rest: noted(plain(data, *rest)))

    def noted(made):
        seen.append(weakref.ref(made.feats.base if made.feats.base is not None else made.feats))
        return made

    def train(*args, **keywords):
        gc.collect()
        assert seen and not [one for one in seen if one() is not None]
        return call(*args, **keywords)

    monkeypatch.setattr(source, "load_graph", lambda data, *rest, **words: noted(plain(data, *rest, **words)))
    monkeypatch.setattr(place, "call_on_ranks", train)
    dg.fit(str(tmp_path / "graph"), "sage", ranks=1, quiet=True, hidden_feats=8, epochs=3)
    assert len(seen) == 2  # read from its folder once; the second time it is in memory
