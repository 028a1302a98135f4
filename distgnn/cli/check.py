"""`distgnn check`: is this installation right? Kernels, MPI, threads, and one exact training step."""

import sys

import typer

from distgnn.cli.display import print_table


def register(app: typer.Typer) -> None:
    app.command()(check)


def check(
    ranks: int = typer.Option(1, help="Ranks to start where none were started."),
    threads: int | None = typer.Option(None, help="Threads per rank [default: cores / ranks]."),
) -> None:
    """Verify kernels, MPI, threads and one exact training step on the ranks it is given."""
    from distgnn.cli.ranks import run_on_ranks

    code = run_on_ranks(sys.argv[1:], ranks, threads)
    if code is not None:
        raise typer.Exit(code)
    from distgnn.train.self_check import check_installation

    report = check_installation()
    if report.rank == 0:
        print_table("Checked", report.rows)
    if not report.ok:
        raise typer.Exit(1)
