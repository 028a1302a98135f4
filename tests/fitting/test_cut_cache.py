"""Cuts are kept, also where there are no locks; the oldest go, and what is damaged is made anew."""

import errno
import fcntl
import json
import os

import pytest

from distgnn.cli.main import make_app
from distgnn.fitting import cut_cache
from distgnn.fitting.source import cut_of


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
