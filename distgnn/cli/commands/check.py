"""`distgnn check`: is this installation right? Kernels, MPI, threads, and one exact training step."""

import json

import typer

from distgnn.cli.display import print_table
from distgnn.cli.options import AsJson, Threads


def check(
    ranks: int = typer.Option(1, help="Ranks to start where none were started."),
    threads: Threads = None,
    as_json: AsJson = False,
) -> None:
    """Verify kernels, MPI, threads and one exact training step on the ranks it is given."""
    from distgnn.cli.ranks import run_on_ranks

    run_on_ranks(ranks, threads)
    import torch

    from distgnn import kernels
    from distgnn.config import ModelConfig
    from distgnn.datasets import load_graph
    from distgnn.nn import build_model
    from distgnn.train.self_check import check_installation

    graph = load_graph("communities:nodes=600,communities=12,avg_degree=10,feats=19,classes=5,seed=1")
    torch.manual_seed(0)
    model = build_model(ModelConfig(hidden_feats=16), 19, 5)
    report = check_installation(kernels.self_check(), kernels.get_num_threads, graph, model)
    made = kernels.compilation()
    finding = f"{made.compiled} kernels compiled, {made.loaded} loaded from the cache, {made.seconds:.1f} s in all"
    report.add("machine code", True, finding)
    if report.rank == 0 and as_json:
        print(json.dumps({"ok": report.ok, "findings": report.rows}, indent=1))
    elif report.rank == 0:
        print_table("Checked", report.rows)
    if not report.ok:
        raise typer.Exit(1)
