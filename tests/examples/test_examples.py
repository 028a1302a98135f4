"""Every file of examples/ does what its head says: the commands there are run, on real ranks."""

import ast
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from command import without_rank_variables

from distgnn.cli.main import main, make_app

EXAMPLES = Path(__file__).parents[2] / "examples"
NEEDS = dict.fromkeys(("export.py", "fit_dgl.py"), "dgl")
NEEDS |= dict.fromkeys(("pyg_model.py", "fit_pyg.py"), "torch_geometric") | {"search_optuna.py": "optuna"}
FEWER, NARROW = ("parts 30", "parts 10"), (", 64,", ", 8,")
SMALL = ("communities:nodes=2000", "communities:nodes=2000,feats=8,classes=8")  # of 64 features and 10 classes
SHORTER = {  # fewer epochs and starts of ranks; the width of most tests, for each compiles kernels of its own
    "fit_pyg.py": [("epochs=30", "epochs=3"), NARROW, ("channels=10", "channels=8")],
    "fit_dgl.py": [("epochs=30", "epochs=3"), ("64, 128", "8, 8"), ("128, 10", "8, 8")],
    "search_optuna.py": [("search_optuna.py 3", "search_optuna.py 1"), ("[32, 64]", "[8]"), ("ranks=2", "ranks=1")],
    "export.py": [("--epochs 30", "--epochs 3"), ("--parts 2", "--parts 1"), ("feats 64", "feats 8")],
    "graph_classification.py": [FEWER, (", 32,", ", 8,")],
    "link_prediction.py": [FEWER, ("64, 64", "8, 8"), ('"dot", 64', '"dot", 8')],
}
IN_ONE_PROCESS = {
    "fit_pyg.py": "largest difference to result.predict(): ",
    "fit_dgl.py": "largest difference to result.predict(): ",
    "search_optuna.py": "best of 1 trials: {",
    "export.py": "largest difference to distgnn predict: ",
}
ON_RANKS = {
    "own_loop.py": "logits [2000, 8]",
    "pyg_model.py": "test accuracy ",
    "custom_loss.py": "epoch 10  focal loss ",
    "link_prediction.py": "of the test edges",
    "graph_classification.py": "of 100 graphs",
}
ONE_AFTER_THE_OTHER = """
import os, runpy, sys
for name, *words in {jobs!r}:
    os.chdir(os.path.dirname(name))
    sys.argv = [name, *words]
    print("script", os.path.basename(name), flush=True)
    runpy.run_path(name, run_name="__main__")
"""


def run(words: list[str], folder: Path, **more: str) -> subprocess.CompletedProcess:
    """A command in `folder`; `distgnn` and `python` are those of this environment."""
    programs = {"distgnn": [sys.executable, "-m", "distgnn.cli"], "python": [sys.executable]}
    command = [*programs.get(words[0], [words[0]]), *words[1:]]
    environment = without_rank_variables() | {"PYTHONPATH": str(EXAMPLES.parent), "MPLBACKEND": "agg"} | more
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=900, check=False
    )


@pytest.fixture(scope="session")
def kept(tmp_path_factory) -> Path:
    """Folders that one example makes and others use: cuts of `dg.fit` by content, parts by the command's words."""
    return tmp_path_factory.mktemp("kept")


def test_every_example_is_in_the_table_and_here():
    files = {path.name for path in EXAMPLES.iterdir() if path.is_file()} - {"README.md"}
    table = (EXAMPLES / "README.md").read_text()
    assert {name for name in files if f"| `{name}` |" in table} == files
    source = Path(__file__).read_text()
    assert {name for name in files if f'"{name}"' in source} == files


def test_the_image_installs_what_there_is_and_runs_commands_that_exist():
    """No container is built: every command is parsed as the program would parse it."""
    text = (EXAMPLES / "Dockerfile").read_text()
    project = (EXAMPLES.parent / "pyproject.toml").read_text()
    torch, extra = re.search(r'"(torch[^"]+)"', text)[1], re.search(r'"/opt/distgnn\[(\w+)\]"', text)[1]
    assert f'    "{torch}",\n' in project and f"\n{extra} = [" in project
    steps = [line.split()[0] for line in text.splitlines() if line[:1].isupper()]
    assert steps == ["FROM", "ARG", "RUN", "COPY", "RUN", "ENV", "WORKDIR", "RUN", "ENTRYPOINT"]
    commands = [shlex.split(words) for words in re.findall(r"(?:^RUN| -v \S+) distgnn (.+)$", text, re.MULTILINE)]
    assert [words[0] for words in commands] == ["partition", "train", "warmup"]
    program = typer.main.get_command(make_app())
    for name, *words in commands:
        program.commands[name].make_context(name, words)
    made = program.commands["warmup"].make_context("warmup", commands[-1][1:]).params
    assert f"ENV NUMBA_CACHE_DIR={made['cache']}\n" in text and made["hidden_feats"] == 256


def commands_of(name: str, folder: Path) -> list[list[str]]:
    """The commands at the head of an example, which is put into a folder."""
    script = (EXAMPLES / name).read_text().replace(*SMALL)
    for more, fewer in SHORTER.get(name, [FEWER, NARROW]):
        assert more in script
        script = script.replace(more, fewer)
    (folder / name).write_text(script)
    head = ast.get_docstring(ast.parse(script), clean=False) or ""
    return [shlex.split(line) for line in head.splitlines() if line.split()[:1] in (["distgnn"], ["python"])]


def made_here(words: list[str], folder: Path, kept: Path) -> bool:
    """Whether a command of the program needs no ranks: then it is run in this process, and each cut made once."""
    parts, shared = kept / "-".join(words).replace("/", "-"), words[1] == "partition" and ":" in words[2]
    if words[0] != "distgnn":
        return False
    if shared and parts.is_dir():
        shutil.copytree(parts, folder / "parts")
        return True
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr(sys, "argv", words)
        assert main() == 0
    if shared:
        shutil.copytree(folder / "parts", parts)
    return True


@pytest.mark.slow
@pytest.mark.parametrize("start", ["python", "distgnn run -n 2"])
def test_the_commands_at_their_heads(start, tmp_path, kept):
    """Scripts that a command starts in the same way run one after the other in one process, or on the same ranks."""
    jobs, examples = [], IN_ONE_PROCESS if start == "python" else ON_RANKS
    for name in examples:
        if name in NEEDS and importlib.util.find_spec(NEEDS[name]) is None:
            continue
        (folder := tmp_path / Path(name).stem).mkdir()
        *before, last = commands_of(name, folder)
        for words in before:
            if not made_here(words, folder, kept):
                done = run(words, folder)
                assert done.returncode == 0, done.stderr
        assert last[: len(start.split()) + 1] == [*start.split(), name]
        jobs.append((str(folder / name), *last[len(start.split()) + 1 :]))
    (tmp_path / "all.py").write_text(ONE_AFTER_THE_OTHER.format(jobs=jobs))
    done = run([*start.split(), "all.py"], tmp_path, DISTGNN_CACHE=str(kept / "cache"))
    assert done.returncode == 0, done.stdout + done.stderr
    for job in jobs:
        name = Path(job[0]).name
        said = done.stdout.partition(f"script {name}\n")[2].partition("\nscript ")[0]
        assert examples[name] in said, (name, done.stdout)
        if "largest difference" in examples[name]:
            assert float(said.split()[-1]) < 1e-3  # logits of float32 sums in another order


@pytest.mark.slow
def test_the_notebook_in_a_kernel(tmp_path, monkeypatch):
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    path = os.pathsep.join(filter(None, [str(EXAMPLES.parent), os.environ.get("PYTHONPATH")]))
    for name, value in {"PYTHONPATH": path, "DISTGNN_CACHE": str(tmp_path / "cache")}.items():
        monkeypatch.setenv(name, value)
    notebook = nbformat.read(EXAMPLES / "fit.ipynb", as_version=4)
    for cell in notebook.cells:
        cell.source = cell.source.replace("128", "8").replace(*NARROW).replace("epochs=30", "epochs=5")
    where = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(notebook, timeout=900, kernel_name="python3", resources=where).execute()
    shown = [out.get("data", {}) for cell in notebook.cells for out in cell.get("outputs", ())]
    assert sum("image/png" in data for data in shown) == 1  # replaced, not one below the other
    assert not any(out.get("name") == "stderr" for cell in notebook.cells for out in cell.get("outputs", ()))  # red
    said = "".join(data.get("text/plain", "") for data in shown)
    assert "FitResult(epochs=5, loss=" in said and "[(0, " in said and ", (1, " in said


def on_path(folder: Path, **programs: str) -> str:
    """PATH with programs of this name before all others."""
    for name, text in programs.items():
        (folder / name).write_text(f"#!/bin/bash\n{text}\n")
        (folder / name).chmod(0o755)
    return f"{folder}{os.pathsep}{os.environ['PATH']}"


@pytest.mark.parametrize(("code", "requeued"), [(138, "requeue 7\n"), (0, ""), (1, "")])
def test_the_batch_script_goes_on_after_its_time_limit(code, requeued, tmp_path):
    path = on_path(tmp_path, srun=f'echo "$@" > srun.txt; exit {code}', scontrol='echo "$@" > scontrol.txt')
    job = {"SLURM_CPUS_PER_TASK": "12", "SLURM_JOB_ID": "7", "PATH": path}
    assert run(["bash", "-n", str(EXAMPLES / "slurm.sh")], tmp_path).returncode == 0
    done = run(["bash", str(EXAMPLES / "slurm.sh"), "parts-8"], tmp_path, **job)
    assert (done.returncode, done.stderr) == (code, "")
    words = shlex.split((tmp_path / "srun.txt").read_text())
    name, *options = words[words.index("distgnn") + 1 :]
    made = typer.main.get_command(make_app()).commands[name].make_context(name, options).params
    assert (name, str(made["parts"]), made["epochs"], made["resume"]) == ("train", "parts-8", 2000, True)
    told = tmp_path / "scontrol.txt"
    assert (told.read_text() if told.exists() else "") == requeued
