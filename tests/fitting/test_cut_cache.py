"""Cuts are kept by content and options: the same graph is not cut again, another one is, and old ones go."""

import errno
import fcntl
import json
import os
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from distgnn.cli.main import make_app
from distgnn.config import CutConfig
from distgnn.errors import InputError
from distgnn.fitting import cut_cache, source
from distgnn.fitting.source import cut_of


@pytest.fixture
def cut(monkeypatch):
    """`cut(data)` gives whether it was cut, and what was said."""
    cuts = []
    made = source.partition_graph
    monkeypatch.setattr(source, "partition_graph", lambda *args, **more: (cuts.append(args), made(*args, **more))[1])

    def cut(data, parts=1, config=None, split=None, seed=0) -> tuple[bool, str]:
        before, said = len(cuts), []
        with cut_of(data, parts, config, split, seed, say=said.append) as found:
            assert found.manifest["num_parts"] == parts
        return len(cuts) > before, "\n".join(said)

    return cut


def test_labels_that_a_task_needs_are_missed_before_the_cut(cut, graph):
    with (
        pytest.raises(InputError, match="task node needs them"),
        cut_of(replace(graph, labels=None), 1, None, None, 0, task="node"),
    ):
        pass
    assert cut(replace(graph, labels=None))[0]  # it was not cut


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


def test_facts_that_another_program_kept_are_read_anew(cut, graph, tmp_path, cache):
    graph.save(tmp_path / "g")
    assert cut(tmp_path / "g")[0]
    (file,) = (cache / "graphs").glob("*.json")
    facts = json.loads(file.read_text())
    for other in (facts | {"of_tomorrow": 1}, {"name": "g", "has_values": False}):
        file.write_text(json.dumps(other))
        assert not cut(tmp_path / "g")[0] and json.loads(file.read_text()) == facts


@pytest.mark.parametrize("number", [errno.EBADF, errno.ENOSYS, errno.ENOLCK])
def test_a_file_system_without_locks_is_said_and_used(cut, graph, monkeypatch, number):
    """What may be in use there stays when the cache is full."""

    def flock(_handle, _how):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", flock)
    first, again = cut(graph), cut(graph)
    assert (first[0], again[0]) == (True, False)
    assert [text.count("is on a file system without locks") for _, text in (first, again)] == [1, 1]
    monkeypatch.setenv("DISTGNN_CACHE_SIZE", "1")
    assert cut(graph, parts=2)[0] and not cut(graph)[0]


def test_what_is_said_of_a_graph_is_said_again(cut, arrays):
    first, again = cut(arrays, seed=2), cut(arrays, seed=2)
    assert (first[0], again[0], cut(arrays, seed=3)[0]) == (True, False, True)
    for _, said in (first, again):
        assert "random split by seed 2, stratified by class: train 36, valid 12, test 12" in said
    matrix = sp.coo_matrix((np.ones(400), tuple(arrays["edge_index"])), shape=(60, 60))
    sparse = {"adjacency": matrix, "x": arrays["x"], "y": arrays["y"], "colour": 1}
    with pytest.raises(InputError, match="unknown field of a graph: 'colour'"):
        cut(sparse)


def test_the_oldest_go_when_the_limit_is_passed(cut, graph, monkeypatch, capsys):
    def run(*words):
        make_app(["cache"])(["cache", *words], standalone_mode=False)
        return capsys.readouterr().out

    for parts in (1, 2, 3):
        cut(graph, parts=parts)
    sizes = {one.what: one.num_bytes for one in cut_cache.entries()}
    assert list(sizes) == [f"graph, {parts} parts" for parts in (3, 2, 1)]
    os.utime(next(one for one in cut_cache.entries() if one.what == "graph, 1 parts").path / "about.json")
    monkeypatch.setenv("DISTGNN_CACHE_SIZE", str(sum(sizes.values())))
    cut(graph, parts=4)
    kept = [one["what"] for one in json.loads(run("--json"))["entries"]]
    assert "graph, 4 parts" in kept and "graph, 1 parts" in kept and "graph, 2 parts" not in kept
    with cut_of(graph, 4, None, None, 0):
        assert "1 in use" in run("--clear")
    assert [one.what for one in cut_cache.entries()] == ["graph, 4 parts"]
    (cut_cache.entries()[0].path / "parts" / "partition.json").unlink()
    assert cut(graph, parts=4)[0]  # half of a cut is none
    for name in ("feats.npy", "partition.json"):
        file = next((cut_cache.entries()[0].path / "parts").rglob(name))
        flipped = bytearray(file.read_bytes())
        flipped[-2] ^= 1
        file.write_bytes(flipped)
        made, said = cut(graph, parts=4)
        assert made and said.count("the kept cut is damaged, and made anew") == 1 and not cut(graph, parts=4)[0]


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
