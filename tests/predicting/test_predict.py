"""`dg.predict` as a user calls it: on one rank, with rows in files, in a shell; and what is refused or stopped."""

import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import torch
from command import distgnn, slowness
from cut_graphs import random_graph

import distgnn as dg
from distgnn.errors import InputError, RunError
from distgnn.ops import buffers, file_memory
from distgnn.predicting import predict as predict_file

WIDTH = 8
pyg = pytest.importorskip("torch_geometric").nn


class Gives(torch.nn.Module):
    """What a function makes of its rows."""

    def __init__(self, made):
        super().__init__()
        self.made = made

    def forward(self, x):
        return self.made(x)


def test_on_one_rank():
    """A layer of ours; and an ordinary tensor, which is in the data's order."""
    source = random_graph(4)
    feats = torch.from_numpy(source.feats)
    torch.testing.assert_close(dg.predict(Gives(lambda x: x @ x.t()), source, ranks=1, quiet=True), feats @ feats.t())
    found = dg.predict(dg.nn.GraphSAGE(WIDTH, 8, 4).train(), random_graph(4), ranks=1, quiet=True)
    assert found.shape == (60, 4) and found.dtype == torch.float32


def test_rows_wait_in_files(tmp_path, monkeypatch):
    """The same bits, no hidden row in memory that is no file's, and nothing left of the files."""
    source, model, made = random_graph(4, num_nodes=900), pyg.models.GraphSAGE(WIDTH, 64, 4, 4), []
    wanted = dg.predict(model, source, ranks=1, quiet=True)
    monkeypatch.setattr(buffers, "SMALL", 1 << 10)
    begin = file_memory.FileMemory.begin_there
    monkeypatch.setattr(file_memory.FileMemory, "begin_there", lambda *args: (made.append(args), begin(*args))[1])
    assert torch.equal(dg.predict(model, source, ranks=1, quiet=True, offload=tmp_path), wanted)
    assert len(made) >= 6 and not list(tmp_path.iterdir())  # sums, and what ReLU gives


def fails(x):
    raise ValueError("two\nlines")


class Misfits(torch.nn.Module):
    def forward(self, x):
        return x @ torch.ones(9, 2)


BAD = {
    "draws": (Gives(lambda x: torch.nn.functional.dropout(x, 0.5)), {}, "draws random numbers in evaluation mode"),
    "another width": (torch.nn.Linear(9, 2), {}, "cannot be multiplied"),
    "own error": (Gives(fails), {}, r"own code fails: ValueError: two lines \(test_predict.py:\d+\)$"),
    "own product": (Misfits(), {}, r"own code fails: RuntimeError: .* \(test_predict.py:\d+\)$"),
    "earlier rows of nothing": (torch.nn.Linear(WIDTH, 2), {"before": np.ones((60, 2))}, "give changed"),
    "a text": (Gives(lambda x: (x.new_zeros(3, 2)[None][0], "text")), {}, "the model gave a str for 1"),
    "no module": (lambda x: x, {}, "model is a function: give a torch module"),
    "a layer": (torch.nn.Linear(WIDTH, 2), {"layers": "convs.1"}, "the model has no module 'convs.1'"),
    "lazy": (torch.nn.LazyLinear(2), {}, "weights without numbers"),
    "an ending": (torch.nn.Linear(WIDTH, 2), {"out": "z.txt"}, "expected .* .tsv, .parquet"),
    "classes of no table": (torch.nn.Linear(WIDTH, 2), {"out": "z.npy", "classes": True}, "classes are written into"),
    "no layers": (Gives(lambda x: x), {"embeddings": True}, "Gives has no last layer"),
    "a long name": (torch.nn.Linear(WIDTH, 2), {"out": "z" * 300 + ".npy"}, "use at most 200"),
    "no folder": (torch.nn.Linear(WIDTH, 2), {"offload": "nowhere"}, "offload is nowhere: no such folder"),
    "a folder": (torch.nn.Linear(WIDTH, 2), {"out": "nowhere/z.npy"}, "an existing folder"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input(tmp_path, monkeypatch, name):
    model, options, said = BAD[name]
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=said):
        dg.predict(model, random_graph(4), ranks=1, quiet=True, **options)
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_in_a_shell(run, tmp_path, monkeypatch):
    """One start of ranks; all else in this process."""
    monkeypatch.setattr(predict_file, "measured", lambda *_: (1 << 30, {"parts": []}))
    (tmp_path / "in_a_shell.py").write_text(
        "import torch\n\n\ndef make():\n    torch.manual_seed(1)\n    return torch.nn.Linear(64, 3)\n\n\n"
        "def fails():\n    return nothing\n"
    )
    torch.manual_seed(0)
    state = torch.nn.Linear(64, 3).state_dict()
    torch.save(state, tmp_path / "w.pt")
    make, out = f"{tmp_path / 'in_a_shell.py'}:make", ("--out", tmp_path / "z.npy")
    words = ("communities:nodes=200", "--weights", tmp_path / "w.pt")
    done = distgnn("predict", make, *words, "--ranks", 2, *out)
    assert done.returncode == 0, done.stderr
    model = torch.nn.Linear(64, 3)
    model.load_state_dict(state)
    wanted = dg.predict(model, "communities:nodes=200", ranks=1, quiet=True)
    np.testing.assert_allclose(np.load(tmp_path / "z.npy"), wanted.numpy(), rtol=1e-6)
    (tmp_path / "ids.txt").write_text("3\n7\n")
    again = ("--changed", tmp_path / "ids.txt", "--before", tmp_path / "z.npy", "--out", tmp_path / "y.npy")
    for function, more, code, said in (
        ("none", out, 2, "has no function 'none'"),
        ("fails", out, 2, "the model's own code fails: NameError: name 'nothing' is not defined (in_a_shell.py:10)"),
        ("make", (*out, "--memory", "100MB"), 2, "the program alone takes"),
        ("make", (), 2, "Missing option '--out'"),
        ("make", ("--plan",), 0, "memory: about 349 MB a rank, beside mapped files; with offload 349 MB"),
        ("make", again, 0, ""),
    ):
        words = ("communities:nodes=200", "--weights", tmp_path / "w.pt", "--ranks", 1, "--overwrite", "--quiet")
        found, shown, err = run("predict", f"{make.removesuffix('make')}{function}", *words, *more)
        assert found == code and said in shown + err and err.count("\n") == bool(code), err
    np.testing.assert_allclose(np.load(tmp_path / "y.npy"), wanted.numpy(), rtol=1e-6)
    killed = RunError("rank 0 was killed")
    killed.said = True  # by who watched the ranks
    monkeypatch.setattr(predict_file, "call_on_ranks", lambda *args, **options: raised(killed))
    assert run("predict", make, *words, *out) == (2, "", "")


def raised(error):
    raise error


WAITS = """
import pathlib, time, torch
class Waits(torch.nn.Module):
    def forward(self, x):
        pathlib.Path(__file__).with_suffix(".begun").touch()
        time.sleep(600)
        return x
"""


@pytest.mark.slow
def test_stopped_by_hand(tmp_path):
    """Ctrl-C in a pass ends it: no file, no line of Python."""
    (tmp_path / "waits.py").write_text(WAITS)
    (tmp_path / "out").mkdir()
    words = ["predict", f"{tmp_path / 'waits.py'}:Waits", "communities:nodes=200", "--ranks", "2"]
    command = [sys.executable, "-m", "distgnn.cli", *words, "--out", str(tmp_path / "out" / "z.npy")]
    running = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 120 * slowness()
    while not (tmp_path / "waits.begun").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    running.send_signal(signal.SIGINT)
    said = running.communicate(timeout=120 * slowness())[1]
    assert running.returncode not in (0, 1) and "Traceback" not in said, said
    assert not list((tmp_path / "out").iterdir())
