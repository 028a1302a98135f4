"""The commands as a user types them, with real ranks."""

import json
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest
from command import distgnn


def one_line_error(done: subprocess.CompletedProcess, says: str) -> None:
    assert done.returncode == 2, done
    assert done.stderr.count("distgnn: error: ") == 1, done.stderr
    assert says in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_the_logits_do_not_depend_on_the_parts(run, ran, trained, graph_folder, parts, tmp_path):
    """Trained on 2 ranks, predicted on 1 and on 2 of another cut, in the original vertex order."""
    cut = tmp_path / "cut"
    code, out, err = run("partition", graph_folder, "--parts", 2, "--out", cut, "--method", "libra")
    assert code == 0 and "replication factor" in out, err
    done, folder = trained
    for name in ("test accuracy", "waiting", "exchanged", "replication factor", str(folder)):
        assert name in done.stdout
    assert "4/4" in done.stderr
    ran("predict", folder, parts, "--out", tmp_path / "logits-1.npy", "--quiet")
    done = distgnn("predict", folder, cut, "--out", tmp_path / "logits-2.npy", "--quiet")
    assert done.returncode == 0, done.stderr
    one, two = (np.load(tmp_path / f"logits-{ranks}.npy") for ranks in (1, 2))
    np.testing.assert_allclose(two, one, rtol=1e-4, atol=1e-5)  # float32 sums in another order
    assert (one.shape, one.dtype) == ((40, 4), np.float32)
    summary = json.loads((folder / "summary.json").read_text())
    labels, test = np.load(graph_folder / "labels.npy"), np.load(graph_folder / "test.npy")
    assert (one[test].argmax(1) == labels[test]).mean() == pytest.approx(summary["test_accuracy"])


@pytest.mark.slow
def test_given_ranks_train_several_seeds_and_a_wrong_number_of_them_is_refused(two_parts, tmp_path):
    words = ["--runs", 2, "--epochs", 2, "--hidden-feats", 8, "--run-dir", tmp_path / "run", "--json"]
    one_line_error(distgnn("train", two_parts, *words, under=1), "2 parts but 1 ranks are running")
    assert not (tmp_path / "run").exists()
    done = distgnn("train", two_parts, *words, under=2)
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert (summary["ranks"], summary["seeds"]) == (2, [0, 1])
    each = [json.loads((tmp_path / "run" / f"seed-{seed}" / "summary.json").read_text()) for seed in range(2)]
    values = [one["test_metric"] for one in each]
    assert summary["test_metric"] == pytest.approx(np.mean(values))
    assert summary["test_metric_std"] == pytest.approx(np.std(values, ddof=1))
    saved = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert saved["test_metric"] == summary["test_metric"]


@pytest.mark.slow
def test_an_unknown_option_under_mpiexec_is_printed_once(two_parts):
    one_line_error(distgnn("train", two_parts, "--bogus", under=2), "--bogus")


@pytest.mark.slow
def test_a_part_that_one_rank_cannot_read_ends_all(two_parts, tmp_path):
    next(two_parts.glob("part-*1/global_ids.npy")).unlink()
    one_line_error(distgnn("train", two_parts, "--run-dir", tmp_path / "run"), "global_ids.npy")
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_check_passes_on_two_ranks():
    done = distgnn("check", "--ranks", 2, timeout=900)  # it compiles all kernels where none are kept
    assert done.returncode == 0, done.stderr
    assert "training step  ok: 2 ranks against one process" in done.stdout
    assert len(re.findall(r"^kernels: .+ m?s$", done.stderr, re.MULTILINE)) == 1  # of one rank


ROOT = Path(__file__).parents[3]
README = (ROOT / "README.md").read_text()
SCRIPTS = {"my_train.py": README, "own_loop.py": (ROOT / "docs" / "guide" / "own-loop.md").read_text()}


def documented(name: str) -> str:
    """The code block of README or guide that begins with `# name`."""
    return SCRIPTS[name].split(f"```python\n# {name}\n")[1].split("```")[0]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["my_train.py", "own_loop.py"])
def test_the_scripts_of_readme_and_guide(name, two_parts, tmp_path, monkeypatch):
    """They are cut out of the pages, so that they stay true, and started as these say; only with fewer epochs."""
    if "dgl" in documented(name):
        pytest.importorskip("dgl")
    monkeypatch.chdir(tmp_path)
    two_parts.rename("parts")
    script = documented(name).replace("epochs=100", "epochs=2").replace("range(100)", "range(2)")
    Path(name).write_text(script)
    assert f"```\ndistgnn run -n 2 {name}\n```" in SCRIPTS[name]
    done = distgnn("run", "-n", 2, name)
    assert done.returncode == 0, done.stderr
    if name == "my_train.py":
        assert "test accuracy" in done.stdout
    else:
        assert float(done.stdout) > 0


def test_the_own_loop_of_the_guide_is_short():
    assert sum(bool(line.strip()) for line in documented("own_loop.py").splitlines()) <= 16
