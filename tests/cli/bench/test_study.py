"""A study: what is found while measuring, and its cuts."""

import pytest
from studies import training, turn

import distgnn as dg
from distgnn.bench import study
from distgnn.errors import InputError
from distgnn.train.checkpoint.identity import PARTS


def test_what_is_found_while_measuring(parts, two_parts, tmp_path, monkeypatch, run):
    monkeypatch.setattr(study, "_turns", lambda plan, folder, count: {"graph": hashes | {"arcs": folder}})
    hashes = {"vertices": 40, "arc count": 300} | dict.fromkeys(PARTS, "")
    code, _, err = run("bench", parts, two_parts, "--out", tmp_path / "study", "--quiet")
    assert (
        code == 2 and err == f"distgnn: error: {two_parts} is of another graph than {parts}: its arcs are different\n"
    )
    kept = {path.name for path in (tmp_path / "study" / "kept").iterdir()}
    assert kept == {"study.json", "turns-1.json", "turns-2.json"}

    def without_rights(*given):
        raise InputError("needs root")

    monkeypatch.setattr(study, "_turns", without_rights)
    code, _, err = run("bench", two_parts, "--out", tmp_path / "other", "--quiet")
    assert code == 2 and err.count("\n") == 1 and not (tmp_path / "other").exists()  # nothing was measured


def test_a_study_from_python_cuts_once_for_each_number_of_ranks(tmp_path, monkeypatch):
    """Its turns are not measured here, and nothing is trained: the study above and the example in its docstring do."""

    def turns(plan, folder, count):
        same = {"graph": {"vertices": 60, "arc count": 400} | dict.fromkeys(PARTS, ""), "versions": {}, "lines": []}
        return same | {"rows": {"cd-0": turn("cd-0", count, 1.0)}}

    monkeypatch.setenv("DISTGNN_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(study, "_turns", turns)
    monkeypatch.setattr(study, "_trained", lambda *given: training([0.5]))
    data = dg.load_graph("communities:nodes=60,communities=4,feats=8,classes=4,seed=1")
    found = dg.study(data, ranks=[1, 2], algorithms=["cd-0"], hidden_feats=8, epochs=4, rounds=1, quiet=True)
    assert [row["ranks"] for row in found.rows] == [1, 2] and found.rows[0]["final_metric"] == 0.5
    assert len(list((tmp_path / "cache" / "cuts").iterdir())) == 2 and not list((tmp_path / "cache").glob("runs/*"))
    with pytest.raises(InputError, match="algorithms"):
        dg.study(data, algorithm="cd-5")
