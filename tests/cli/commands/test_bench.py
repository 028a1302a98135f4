"""`distgnn bench`: what it refuses before anything is measured."""

import pytest

import distgnn as dg


@pytest.mark.parametrize(
    "words, says",
    [
        (["--network", "here,quick"], "network 'quick'"),
        (["--algorithms", "cd-5/int3"], "unknown word 'int3'"),
        (["--algorithms", ","], "no algorithms"),
        (["--emulate"], "emulate is of other networks than here"),
        (["--tolerance", "2"], "tolerance is 2.0"),
        (["--out", "t.csv"], "t.csv: a study is a folder, with table.csv inside"),
        (["--out", "within"], "partition.json/study/kept: Not a directory"),
        (["again"], "a study takes one cut for each number of ranks"),
        (["other"], "is of another graph: name is communities-50 there, small in "),
    ],
)
def test_bench_refuses(refused, two_parts, tmp_path, words, says):
    if words == ["again"]:
        words = [two_parts]
    if words[-1] == "within":
        words = ["--out", two_parts / "partition.json" / "study"]
    if words == ["other"]:
        dg.partition_graph("communities:nodes=50,feats=8,classes=4", 1, tmp_path / "other", say=lambda line: None)
        words = [tmp_path / "other"]
    refused("bench", two_parts, *words, says=says)
