"""Files that a user's script writes on several ranks: those of one process, by every launcher, and of every writer."""

import filecmp
import os
import subprocess
import sys
from pathlib import Path

import pytest
from command import distgnn, without_rank_variables

from distgnn.system.scripts.own_copies import Copies, publish

WRITERS = """
import csv, glob, gzip, json, logging, os, pathlib, pickle, shutil, sys, tempfile, time
import numpy as np, pandas, torch

def work(out):
    out = pathlib.Path(out)
    if os.path.exists(out / "olddir"):
        shutil.rmtree(out / "olddir")
    os.makedirs(out / "olddir")
    assert "old.txt" not in os.listdir(out / "olddir")
    (out / "olddir" / "new.txt").write_text("new")
    os.mkdir(out / "plain"); (out / "deep" / "er").mkdir(parents=True)
    with open(out / "rows.csv", "a", newline="") as file:  # begun before the job
        csv.writer(file).writerow([3, 4])
    results = json.loads((out / "old.json").read_text())
    (out / "old.json").write_text(json.dumps(results + [len(results)]))
    weights = torch.nn.Linear(3, 2, bias=False).state_dict()
    for turn in range(6):  # early stopping
        weights["weight"].fill_(turn)
        torch.save(weights, out / "best.pt")
        assert bool((torch.load(out / "best.pt")["weight"] == turn).all())
        torch.save(weights, f"{out}/epoch_{turn}.tmp"); os.replace(f"{out}/epoch_{turn}.tmp", f"{out}/epoch_{turn}.pt")
        if turn >= 3:
            os.remove(f"{out}/epoch_{turn - 3}.pt")
        kept = sorted(glob.glob(f"{out}/epoch_*.pt"), key=lambda name: int(name[:-3].rpartition("_")[2]))
        assert int(kept[-1][:-3].rpartition("_")[2]) == turn, kept
        if not os.path.exists(out / "log.csv"):
            (out / "log.csv").write_text("turn,value\\n")
        with (out / "log.csv").open("a") as file:
            print(turn, turn * turn, sep=",", file=file)
    np.save(out / "a.npy", np.arange(5)); np.savez(out / "b.npz", x=np.arange(3)); np.savetxt(out / "c.txt", np.eye(2))
    assert np.load(out / "b.npz")["x"].sum() == 3 and (np.loadtxt(out / "c.txt") == np.eye(2)).all()
    mapped = np.lib.format.open_memmap(out / "m.npy", "w+", shape=(4,)); mapped[:] = 7; mapped.flush()
    pandas.DataFrame({"a": [1, 2]}).to_csv(out / "d.csv", index=False)
    with open(out / "e.pkl", "wb") as file:
        pickle.dump({"a": 1}, file)
    with gzip.GzipFile(out / "f.gz", "wb", mtime=0) as file:
        file.write(b"text")
    shutil.copy(out / "d.csv", out / "deep" / "er" / "copy.csv"); shutil.copytree(out / "deep", out / "deeper")
    os.rename(out / "deep", out / "moved"); (out / "moved" / "er").rename(out / "moved" / "est")
    assert [entry.name for entry in os.scandir(out / "moved")] == ["est"] and not (out / "deep").exists()
    assert [sorted(names) for _, _, names in os.walk(out / "moved")] == [[], ["copy.csv"]]
    number = os.open(out / "g", os.O_WRONLY | os.O_CREAT, 0o644); os.write(number, b"low"); os.close(number)
    os.symlink("g", out / "latest"); assert (out / "latest").read_text() == "low"
    with open(out / "old.csv", "r+") as file:
        assert file.read().startswith("begun"); file.write(" here")
    with tempfile.NamedTemporaryFile("w", dir=out, delete=False) as file:
        file.write("whole")
    os.replace(file.name, out / "whole.txt"); os.chmod(out / "whole.txt", 0o644)
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "x").write_text("x"); os.remove(os.path.join(folder, "x"))
    handler = logging.FileHandler(out / "train.log"); log = logging.getLogger("user"); log.addHandler(handler)
    log.warning("one line"); log.removeHandler(handler)
    os.makedirs(out / "runs")
    name = f"events.out.tfevents.{int(time.time())}.host.{os.getpid()}.0"  # TensorBoard's SummaryWriter
    with open(out / "runs" / name, "ab") as file:
        file.write(b"record")
    matplotlib = __import__("matplotlib"); matplotlib.use("Agg")
    plt = __import__("matplotlib.pyplot").pyplot
    plt.plot([1, 2]); plt.savefig(out / "h.png", metadata={"Software": None}); plt.close("all")
    assert (out / "h.png").stat().st_size > 1000
    open(os.devnull, "w").close()
    os.chdir(out / "plain"); open("here.txt", "w").write("here"); os.chdir("..")
"""
STARTERS = {
    "python": "work(out)",
    "run": "work(out)",
    "fit": """
def make(graph):
    work(out)
    return dg.nn.GraphSAGE(graph.num_feats, 8, graph.num_classes, num_layers=2)
dg.fit("communities:nodes=60,feats=8,classes=4,seed=1", make, ranks=2, epochs=1, quiet=True)
""",
}


def files_below(folder: Path) -> list[str]:
    found = (path.relative_to(folder).as_posix() for path in folder.rglob("*"))
    return sorted("EVENTS" if "tfevents" in name else name for name in found)


def started(folder: Path, how: str, *words: object, ranks: int = 3) -> subprocess.CompletedProcess:
    if how == "run":
        return distgnn("run", "-n", ranks, folder / "script.py", *words)
    command = [sys.executable, str(folder / "script.py"), *map(str, words)]
    environment = without_rank_variables() | {"OMP_NUM_THREADS": "1"}
    return subprocess.run(command, capture_output=True, text=True, timeout=600, env=environment, check=False)


@pytest.mark.slow
def test_every_writer_leaves_what_one_process_leaves(tmp_path):
    for how, call in STARTERS.items():
        folder = tmp_path / how
        (folder / "out" / "olddir").mkdir(parents=True)
        (folder / "out" / "olddir" / "old.txt").write_text("old")
        (folder / "out" / "rows.csv").write_text("a,b\n1,2\n")
        (folder / "out" / "old.csv").write_text("begun")
        (folder / "out" / "old.json").write_text("[0]")
        head = "" if how == "python" else "import distgnn as dg\n"
        (folder / "script.py").write_text(f"{head}{WRITERS}\nout = {str(folder / 'out')!r}\n{call}\n")
        done = started(folder, how, ranks=2)
        assert done.returncode == 0, (how, done.stderr)
        one = tmp_path / "python" / "out"
        names = files_below(one)
        assert files_below(folder / "out") == names, how
        whole = [name for name in names if (one / name).is_file()]
        assert filecmp.cmpfiles(one, folder / "out", whole, shallow=False)[1:] == ([], []), how


OWN = """
import os, pathlib, shutil, sys, time, torch
from mpi4py import MPI
import distgnn
comm = MPI.COMM_WORLD
rank, out = comm.rank, pathlib.Path(sys.argv[1])
if rank == 0:
    (out / "made").mkdir()
    torch.save(torch.ones(2), out / "made" / "first.pt")
comm.Barrier()
assert torch.load(out / "made" / "first.pt").sum() == 2 and os.listdir(out / "made") == ["first.pt"]
(out / f"part_{rank}.csv").write_text(f"{rank}\\n")
os.makedirs(out / f"rank{rank}", exist_ok=True)
(out / f"rank{rank}" / "a.txt").write_text("x" * (rank + 1))
comm.Barrier()
if rank == 0:
    texts = [(out / f"part_{one}.csv").read_text() for one in range(comm.size)]
    (out / "all.csv").write_text("".join(texts))
    time.sleep(1)
if rank == 1:
    (out / "debug.txt").write_text("of rank one")
while rank and not os.path.exists(out / "all.csv"):  # files as signals
    time.sleep(0.01)
assert (out / "all.csv").read_text() == "0\\n1\\n2\\n"
(out / "fold_1.csv").write_text("of all")
if rank == 1:  # ahead of rank 0: a count, of which the first is written and moved
    (out / "step_0.tmp").write_text("0")
    os.replace(out / "step_0.tmp", out / "fold_1.csv")
comm.Barrier()
if rank == 0:
    (out / "step_0.tmp").write_text("0")
comm.Barrier()
if rank == 1:
    (out / "step_1.tmp").write_text("1")
    os.replace(out / "step_1.tmp", out / "fold_1.csv")
    (out / "step_1.tmp").write_text("1")
comm.Barrier()
if rank == 0:
    assert not (out / "step_1.tmp").exists()
    os.remove(out / "step_0.tmp")
if rank == 1:
    os.remove(out / "step_1.tmp")
    (out / "try_0").mkdir()  # the same of folders
    shutil.rmtree(out / "try_0")
comm.Barrier()
if rank == 0:
    (out / "try_0").mkdir()
comm.Barrier()
if rank == 1:
    (out / "try_1").mkdir()
comm.Barrier()
if rank == 0:
    os.rmdir(out / "try_0")
    assert not (out / "try_1").exists()
"""


@pytest.mark.slow
def test_what_ranks_write_alone_is_theirs_and_seen_by_the_others(tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    (out / "part_1.csv").write_text("of another job")
    (tmp_path / "script.py").write_text(OWN)
    done = started(tmp_path, "run", out)
    assert done.returncode == 0, done.stderr
    alone = ["all.csv", "debug.txt", "fold_1.csv", "made", "made/first.pt", "part_0.csv", "part_1.csv", "part_2.csv"]
    assert files_below(out) == [*alone, *(f"rank{one}{rest}" for one in range(3) for rest in ("", "/a.txt"))]
    texts = [(out / name).read_text() for name in ("debug.txt", "part_1.csv", "fold_1.csv", "rank2/a.txt")]
    assert texts == ["of rank one", "1\n", "of all", "xxx"]


def test_what_is_on_the_disk_after_a_removal_is_seen_and_what_vanishes_is_none(tmp_path, monkeypatch):
    """Times of files are some milliseconds late; rank 0 may remove a file while another rank copies it."""
    copies, flag = Copies(str(tmp_path / "rank-1"), 0.0), tmp_path / "flag"
    for _ in range(20):
        Path(copies.write(flag)).write_text("of each")
        copies.remove(os.remove, flag)
        assert not copies.is_seen(str(flag))
        flag.write_text("of all")
        assert copies.is_seen(str(flag)) and copies.read(flag) == flag
        copies.remove(os.remove, flag)
        flag.unlink()
    monkeypatch.setattr(copies, "is_seen", lambda full: True)
    assert not os.path.exists(copies.write(flag))


def test_the_lowest_rank_that_has_written_a_file_gives_it(tmp_path):
    for rank in (10, 2):
        copy = Path(f"{tmp_path}/copies/rank-{rank}{tmp_path}/debug.txt")
        copy.parent.mkdir(parents=True)
        copy.write_text(f"of rank {rank}")
    publish(str(tmp_path / "copies"))
    assert (tmp_path / "debug.txt").read_text() == "of rank 2"


SAYS = """
import logging, sys, warnings
import tqdm
import distgnn
from mpi4py import MPI
logging.basicConfig(); logging.warning("a line of logging")
warnings.warn("a warning")
for _ in tqdm.tqdm(range(3), desc="a bar"):
    pass
rank = MPI.COMM_WORLD.rank
MPI.COMM_WORLD.Barrier()
if sys.argv[1] == "exit" and rank == 1:
    sys.exit("I go")
if sys.argv[1] == "raise" and rank == 1:
    raise ZeroDivisionError("here")
"""


@pytest.mark.slow
@pytest.mark.parametrize("how", ["", "exit", "raise"])
def test_loggers_and_bars_speak_once_and_a_rank_that_fails_shows_its_own(tmp_path, how):
    (tmp_path / "script.py").write_text(SAYS)
    done = started(tmp_path, "run", how or "well", ranks=2)
    ours = [line for line in done.stderr.splitlines() if not line.startswith("rank 1: ")]
    for words in ("a line of logging", "UserWarning: a warning", "3/3"):
        assert sum(words in line for line in ours) == 1, done.stderr
        assert done.stderr.count(words) == (2 if how else 1), done.stderr
    assert (done.returncode != 0) == bool(how)
    assert {"exit": "I go", "raise": "ZeroDivisionError: here", "": ""}[how] in done.stderr


def test_the_user_may_leave_it(tmp_path, monkeypatch):
    monkeypatch.setenv("DISTGNN_FILES", "all")
    (tmp_path / "script.py").write_text("import os, sys; os.mkdir(sys.argv[1])")
    assert "FileExistsError" in started(tmp_path, "run", tmp_path / "out", ranks=2).stderr
    assert os.path.isdir(tmp_path / "out")
