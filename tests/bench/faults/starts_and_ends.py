"""Tables of how jobs end and start: seconds, exit code and the line, for each way a rank leaves and each launcher.

    python tests/bench/faults/starts_and_ends.py WORK [--ends [NAME …]] [--starts [NAME …]] [--launchers run mpiexec …]

WORK gets a graph in one and in two parts. Launchers: `run` is `distgnn run`, `mpiexec` MPICH's own beside this Python,
`PATH` any other mpiexec (Open MPI's needs an mpi4py for it). A job that is not over after --limit seconds is ended, and
counts as a fault, as does one with no line. Exits 1 where there was a fault.
"""

import argparse
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

HEAD = """
import os, signal, sys, time
import {first}
import torch, distgnn as dg
from mpi4py import MPI
"""
LOADED = 'graph = dg.load("{parts}")\nrank = graph.rank\n'
WAITS = "graph.global_mean(torch.ones(3))\n"
ONE = "if rank == 0: {act}\n"
# name: (what the script does after the graph was loaded, exit code: None for any but 0, what the line must say)
ENDS = {
    "normal": ("graph.global_mean(torch.ones(3))", 0, ""),
    "one works alone": ("graph.global_mean(torch.ones(3))\nif rank == 0: time.sleep(6)", 0, ""),
    "sys.exit(3)": (ONE.format(act="sys.exit(3)") + WAITS, 3, "rank 0 left in "),
    "SystemExit(text)": (ONE.format(act='raise SystemExit("no data")') + WAITS, 1, "rank 0 left in "),
    "quit()": (ONE.format(act="quit()") + WAITS, None, "rank 0 left in "),
    "return": ("def main():\n    if rank == 0: return\n    " + WAITS + "main()", None, "rank 0 left in "),
    "break": ("for epoch in range(9):\n    if rank == 0 and epoch == 5: break\n    " + WAITS, None, "rank 0 left in "),
    "last rank": ("if rank == graph.comm.size - 1: sys.exit(4)\n" + WAITS, 4, " left in "),
    "exchange": (
        "x = graph.feats\ndg.ops.spmm(graph, x)\nif rank == 0: sys.exit(3)\ndg.ops.spmm(graph, x + 1)",
        3,
        "0 left in ",
    ),
    "os._exit(3)": (ONE.format(act="time.sleep(1); os._exit(3)") + WAITS, 3, "exit code 3"),
    "os._exit(0)": (ONE.format(act="time.sleep(1); os._exit(0)") + WAITS, None, ""),
    "exception": (ONE.format(act="1 / 0") + WAITS, 1, "ZeroDivisionError"),
    **{
        name: (ONE.format(act=f"time.sleep(1); os.kill(os.getpid(), signal.{name})") + WAITS, 128 + number, name)
        for name, number in (("SIGKILL", 9), ("SIGSEGV", 11), ("SIGBUS", 7), ("SIGABRT", 6))
    },
    "before load": (None, None, "rank 0 left in "),
    "before MPI": (None, None, "left before it started MPI"),
}
RANK = "os.environ.get('PMI_RANK', os.environ.get('OMPI_COMM_WORLD_RANK'))"
OTHERS = {
    "before load": "rank = MPI.COMM_WORLD.rank\nif rank == 0: sys.exit(0)\n" + LOADED,
    "before MPI": f"import os, sys, distgnn\nif {RANK} == '0': sys.exit(0)\n"
    "from mpi4py import MPI\nMPI.COMM_WORLD.Barrier()\n",
}


def script(work: Path, name: str, first: str) -> Path:
    head = HEAD.format(first=first)
    body = OTHERS.get(name) or LOADED + (ENDS[name][0] or "")
    path = work / "end.py"
    path.write_text(("" if name == "before MPI" else head) + body.format(parts=work / "p2"))
    return path


def command(launcher: str, path: Path, ranks: int) -> list[str]:
    if launcher == "run":
        return [sys.executable, "-m", "distgnn.cli", "run", "-n", str(ranks), str(path)]
    found = str(Path(sys.executable).parent / "mpiexec") if launcher == "mpiexec" else launcher
    root = ["--allow-run-as-root", "--oversubscribe"] if "openmpi" in launcher else []
    return [found, *root, "-n", str(ranks), sys.executable, str(path)]


def timed(words: list[str], limit: float, environment: dict | None = None) -> tuple[float, int | str, str]:
    began = time.monotonic()
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment, start_new_session=True
    ) as process:
        try:
            text, code = process.communicate(timeout=limit)[0], process.returncode
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGTERM)
            text, code = process.communicate()[0], "hung"
    return time.monotonic() - began, code, text


def ends(work: Path, args: argparse.Namespace) -> bool:
    good = True
    for launcher in args.launchers:
        for name in args.ends or ENDS:
            for first in ("os", "mpi4py.MPI") if args.mpi_first else ("os",):
                _, expected, says = ENDS[name]
                seconds, code, text = timed(command(launcher, script(work, name, first), 2), args.limit)
                line = next((one for one in text.splitlines() if says and says in one), "")
                fine = (code == expected if expected is not None else code not in (0, "hung")) and (line or not says)
                good &= bool(fine)
                mark = "" if fine else "  <-- FAULT"
                print(f"| {launcher} | {name} | {seconds:.1f} | {code} | {line[:150]} |{mark}", flush=True)
                if not fine and args.verbose:
                    print(text)
    return good


HERE = socket.gethostname()
# Schedulers: variables of a job (a text that ends in a newline becomes a file), exit code, and what the line must say.
STARTS = {
    "none": ({}, 0, ""),
    "slurm, this node": ({"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": HERE, "SLURM_NNODES": "1"}, 0, ""),
    "slurm, two nodes": ({"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "n[1-2]", "SLURM_NNODES": "2"}, 2, "srun, which"),
    "srun without MPI": ({"SLURM_JOB_ID": "7", "SLURM_STEP_NUM_TASKS": "2"}, 2, "srun started 2 tasks"),
    "torchrun": ({"WORLD_SIZE": "2", "RANK": "0", "TORCHELASTIC_RUN_ID": "none"}, 2, "torchrun started 2"),
    "pbs": ({"PBS_NODEFILE": f"{HERE}\n"}, 0, ""),
    "lsf": ({"LSB_MCPU_HOSTS": f"{HERE} 2"}, 0, ""),
    "sge": ({"PE_HOSTFILE": f"{HERE} 2 all.q UNDEFINED\n"}, 0, ""),
    "sge, two nodes": ({"PE_HOSTFILE": "n1 1 q U\nn2 1 q U\n"}, 2, "qrsh, which"),
    "flux": ({"FLUX_JOB_ID": "1", "FLUX_URI": "local:///run/flux"}, 0, ""),
    "kubernetes": (
        {"HYDRA_HOST_FILE": "localhost:2\n", "OMPI_MCA_orte_default_hostfile": "localhost slots=2\n"},
        0,
        "",
    ),
}


def starts(work: Path, args: argparse.Namespace) -> bool:
    """`distgnn train` on one and on two ranks in the job of each scheduler, by our starter and by mpiexec."""
    good = True
    for starter in ("ours", "mpiexec"):
        for name in args.starts or STARTS:
            variables, expected, says = STARTS[name]
            environment = dict(os.environ)
            if starter == "mpiexec":
                environment["DISTGNN_MPIEXEC"] = str(Path(sys.executable).parent / "mpiexec")
            for key, value in variables.items():
                if value.endswith("\n"):
                    (work / key).write_text(value)
                    value = str(work / key)
                environment[key] = value
            for ranks in (1, 2):
                words = ["train", str(work / f"p{ranks}"), "--epochs", "2", "--quiet", "--overwrite"]
                full = [sys.executable, "-m", "distgnn.cli", *words, "--run-dir", str(work / "run")]
                seconds, code, text = timed(full, args.limit, environment)
                line = next((one for one in text.splitlines() if "error" in one), "")
                wanted = 0 if ranks == 1 and "which" in says else expected  # one rank starts nothing
                fine = code == wanted and (says in line or wanted == 0)
                good &= fine
                mark = "" if fine else "  <-- FAULT"
                print(f"| {name} | {starter} | {ranks} | {seconds:.1f} | {code} | {line[:150]} |{mark}", flush=True)
    return good


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", type=Path)
    parser.add_argument("--ends", nargs="*", help="Only these; no names: all.")
    parser.add_argument("--starts", nargs="*", help="Only these; no names: all.")
    parser.add_argument("--launchers", nargs="+", default=["run", "mpiexec"])
    parser.add_argument("--limit", type=float, default=40)
    parser.add_argument("--mpi-first", action="store_true", help="Also with mpi4py.MPI imported before distgnn.")
    parser.add_argument("--verbose", action="store_true")
    args = parser.parse_args()
    args.work.mkdir(parents=True, exist_ok=True)
    for parts in (1, 2):
        if not (args.work / f"p{parts}").exists():
            words = ["partition", "communities:nodes=200", "--parts", str(parts), "--out", str(args.work / f"p{parts}")]
            subprocess.run([sys.executable, "-m", "distgnn.cli", *words], check=True, capture_output=True)
    good, both = True, args.ends is None and args.starts is None
    if both or args.starts is not None:
        print("| scheduler | starter | ranks | seconds | exit code | line |\n|---|---|---|---|---|---|")
        good &= starts(args.work, args)
    if both or args.ends is not None:
        print("| launcher | end | seconds | exit code | line |\n|---|---|---|---|---|")
        good &= ends(args.work, args)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
