"""`distgnn train`: train on the ranks given, or start one rank per part.

The function `train` is long because every option of the command is one of its arguments.
"""

import json
import statistics
import sys
import time
from dataclasses import asdict, fields, replace
from pathlib import Path

import typer

from distgnn.cli.display import print_table, progress_bar
from distgnn.cli.resume import given_options
from distgnn.cli.train_report import closing_rows, epoch_text
from distgnn.config import DTYPES, MODELS, Algorithm, ModelConfig, TrainConfig, check_choice, check_graph_has
from distgnn.config.schedule import Schedule

AVERAGED = (
    "test_metric",
    "valid_metric",
    "test_accuracy",
    "valid_accuracy",
    "final_loss",
    "epoch_seconds_median",
)
PRESET_OPTIONS = {"update", "cache_first", "transform_first"}


def register(app: typer.Typer) -> None:
    app.command()(train)


def train(
    context: typer.Context,
    parts: str = typer.Argument(help="Partition folder."),
    model: str = typer.Option(
        "sage", help=f"{', '.join(MODELS)}; gine and edgegat use edge features, rgcn edge types."
    ),
    num_layers: int = typer.Option(3, help="Convolutions."),
    hidden_feats: int = typer.Option(256, help="Width of hidden layers."),
    dropout: float = typer.Option(0.5, help="After each hidden layer; masks belong to vertices, not to ranks."),
    norm: str = typer.Option("layer", help="layer, batch, graph, pair or none, after each hidden layer."),
    weighted: bool = typer.Option(False, help="Multiply messages by the graph's edge weights."),
    num_heads: int = typer.Option(4, help="Heads of gat, gatv2 and edgegat; they share the hidden width."),
    residual: bool = typer.Option(False, help="Add a hidden layer's input to its output."),
    jump: str = typer.Option("none", help="none, cat or max: read all hidden layers (jumping knowledge)."),
    num_bases: int = typer.Option(0, help="Of rgcn: relations share so many matrices (0: each has its own)."),
    label_reuse: float = typer.Option(0.0, help="Share of training labels given as input; the loss is on the others."),
    algorithm: str = typer.Option("cd-0", help="cd-0: exact. cd-R: rows count R epochs late. 0c: no exchange."),
    update: str | None = typer.Option(None, help="owners or copies (the paper's form) [default: owners; 0c: copies]."),
    preset: str | None = typer.Option(None, help="distgnn: the paper's form (update on copies, nothing kept)."),
    wire: str = typer.Option("float32", help="float32, bfloat16, int8 or int4: width of rows in training messages."),
    wire_backward: str | None = typer.Option(None, help="The same for gradients [default: as --wire]."),
    warmup_epochs: int = typer.Option(1, help="Synchronous epochs at the start of cd-R."),
    remote_rule: str = typer.Option("held", help="held, or paper: late rows count only in the epoch they arrive in."),
    smooth: float = typer.Option(0.0, help="Weight of the held row in a moving average with what arrives (cd-R)."),
    adaptive: float = typer.Option(0.0, help="Send a row only when it moved by more than this share of its norm."),
    error_feedback: bool = typer.Option(False, help="Add what rounding lost to the next message of a row."),
    epochs: int = typer.Option(200, help="Passes over the whole graph."),
    lr: float = typer.Option(0.01, help="Learning rate of Adam."),
    weight_decay: float = typer.Option(0.0, help="L2 penalty of Adam."),
    lr_schedule: str = typer.Option("constant", help="constant, cosine or plateau."),
    eval_every: int = typer.Option(5, help="Epochs between evaluations."),
    patience: int = typer.Option(0, help="Stop after so many evaluations without improvement (0: never)."),
    inductive: bool = typer.Option(False, help="Train on the training vertices alone, evaluate on the whole graph."),
    metric: str | None = typer.Option(None, help="accuracy, rocauc or f1 [default: by the labels]."),
    remat: bool = typer.Option(False, help="Store only the input of each hidden layer; compute it again backward."),
    cache_first: bool = typer.Option(True, help="Keep the aggregation of the input features."),
    transform_first: bool = typer.Option(True, help="Multiply before aggregating where a layer narrows."),
    dtype: str = typer.Option(
        "float32", help="float32, float64 or bfloat16: of rows; weights and sums of bfloat16 are float32."
    ),
    seed: int = typer.Option(0, help="Of weights and dropout masks."),
    runs: int = typer.Option(1, help="Train with so many seeds and report mean ± standard deviation."),
    run_dir: str | None = typer.Option(None, help="Run folder to write [default: runs/NAME-MODEL-TIME]."),
    overwrite: bool = typer.Option(False, help="Replace an existing run folder."),
    checkpoint_every: int = typer.Option(0, help="Epochs between checkpoints (0: at the end and on signals only)."),
    resume: bool = typer.Option(False, help="Go on from the newest checkpoint in --run-dir, if there is one."),
    timeout: float = typer.Option(600.0, help="Seconds a phase may last before the job is ended (0: no limit)."),
    verify_every: int = typer.Option(0, help="Epochs between comparisons with an exact step (0: never)."),
    memory: str | None = typer.Option(None, help="Memory of a rank, such as 8GB [default: what is free]."),
    threads: int | None = typer.Option(None, help="Threads per rank [default: cores / ranks]."),
    trace: bool = typer.Option(False, help="Write a timeline per rank (Chrome, Perfetto) into the run folder."),
    debug: bool = typer.Option(False, help="Ranks agree on each exchange before it starts."),
    quiet: bool = typer.Option(False, help="No progress and no table."),
    as_json: bool = typer.Option(False, "--json", help="Print the summary as JSON instead of a table."),
) -> None:
    """Train a model on a partition folder; starts mpiexec with one rank per part where none was started."""
    from distgnn.cli.ranks import checked_together, run_on_ranks
    from distgnn.partition import read_manifest
    from distgnn.system.sizes import parse_bytes

    config = TrainConfig(
        epochs=epochs,
        lr=lr,
        weight_decay=weight_decay,
        lr_schedule=lr_schedule,
        eval_every=eval_every,
        patience=patience,
        metric=metric,
        seed=seed,
        run_dir=run_dir,
        overwrite=overwrite,
        trace=trace,
        checkpoint_every=checkpoint_every,
        resume=resume,
        timeout=timeout,
        verify_every=verify_every,
        inductive=inductive,
    )
    if preset is not None:
        check_choice("preset", preset, ("distgnn",))
        update, cache_first, transform_first = "copies", False, False
    network = ModelConfig(
        name=model,
        hidden_feats=hidden_feats,
        num_layers=num_layers,
        dropout=dropout,
        norm=norm,
        weighted=weighted,
        num_heads=num_heads,
        residual=residual,
        jump=jump,
        num_bases=num_bases,
        label_reuse=label_reuse,
        remat=remat,
    )
    settings = {
        "model": asdict(network),
        "data": {"parts": str(Path(parts).resolve())},
        "run": {
            "algorithm": algorithm,
            "update": update,
            "warmup_epochs": warmup_epochs,
            "wire": wire,
            "wire_backward": wire_backward or wire,
            "remote_rule": remote_rule,
            "smooth": smooth,
            "adaptive": adaptive,
            "error_feedback": error_feedback,
            "dtype": dtype,
            "cache_first": cache_first,
            "transform_first": transform_first,
            "runs": runs,
        },
    }
    with checked_together():
        manifest = read_manifest(parts)
        settings["data"] |= _describe_data(manifest)
        if resume:
            given = given_options(context) | (PRESET_OPTIONS if preset is not None else set())
            _check_resume(config, settings, given)
        _check_early(manifest, config, settings)
        limit = None if memory is None else parse_bytes(memory)
    code = run_on_ranks(sys.argv[1:], manifest["num_parts"], threads, graceful=True)
    if code is not None:
        raise typer.Exit(code)
    speak = not quiet and not as_json
    _check_machines(manifest, settings, limit)
    summary, rank = _train_on_this_rank(parts, config, settings, debug, speak)
    if rank == 0 and as_json:
        print(json.dumps(summary, indent=1))
    elif rank == 0 and speak:
        print_table("Trained", closing_rows(summary, manifest))


def _describe_data(manifest: dict) -> dict:
    """What config.toml keeps of the partition: enough to make the model, and the graph it was trained on, again."""
    how = {name: manifest[name] for name in ("name", "direction", "self_loops")}
    return {"checksum": manifest["sha256"], "graph": how | manifest["graph"]}


def _check_early(manifest: dict, config: TrainConfig, settings: dict) -> None:
    """Everything that can be refused before ranks are started."""
    from distgnn.errors import InputError
    from distgnn.train.run.run_folder import check_free

    config.check()
    chosen = Algorithm.parse(settings["run"]["algorithm"])
    settings["run"]["update"] = chosen.check_update(settings["run"]["update"])
    check_choice("dtype", settings["run"]["dtype"], DTYPES)
    schedule_of(settings["run"]).check(chosen, settings["run"]["update"])
    if settings["run"]["runs"] < 1:
        raise InputError(f"runs is {settings['run']['runs']}: expected at least 1")
    ModelConfig(**settings["model"]).check()
    ModelConfig(**settings["model"]).check_dtype(settings["run"]["dtype"])
    if settings["model"]["remat"] and not (chosen.exact and schedule_of(settings["run"]).exact):
        raise InputError("--remat repeats exchanges: it needs algorithm cd-0 and float32 on the wire")
    if settings["model"]["weighted"] and not manifest["graph"]["edge_weight"]:
        raise InputError("--weighted needs edge weights: this partition has none")
    graph = manifest["graph"]
    check_graph_has(settings["model"]["name"], graph.get("num_edge_feats", 0), graph.get("num_relations", 0))
    if config.run_dir is not None:
        check_free(Path(config.run_dir), config.overwrite, config.resume)


def _check_resume(config: TrainConfig, settings: dict, given: set[str]) -> None:
    """What is not given on the command line is as the run was started."""
    from distgnn.cli.resume import take_saved
    from distgnn.errors import InputError

    if config.run_dir is None:
        raise InputError("--resume needs --run-dir: which run?")
    take_saved(config.run_dir, given, config, settings)


def _check_machines(manifest: dict, settings: dict, limit: int | None) -> None:
    """Before anything is loaded: the same program everywhere, one rank per part, memory enough. Collective."""
    from distgnn.comm import raise_together
    from distgnn.graph.loader import check_rank_count
    from distgnn.system.launch import import_mpi
    from distgnn.train.run.estimate import check_memory
    from distgnn.train.run.placement import check_program

    comm = import_mpi().COMM_WORLD
    check_program(comm)
    with raise_together(comm):
        check_rank_count(settings["data"]["parts"], manifest["num_parts"], comm.size)
    check_memory(comm, manifest, settings, limit)


def schedule_of(run: dict) -> Schedule:
    """The schedule among the settings of a run."""
    return Schedule(**{field.name: run[field.name] for field in fields(Schedule)})


def _train_on_this_rank(parts: str, config: TrainConfig, settings: dict, debug: bool, speak: bool) -> tuple[dict, int]:
    from distgnn.graph.loader import load

    run = settings["run"]
    options = {name: run[name] for name in ("update", "dtype", "cache_first", "transform_first")} | asdict(
        schedule_of(run)
    )
    options["sparse_feats"] = ModelConfig(**settings["model"]).takes_sparse_feats
    graph = load(parts, run["algorithm"], **options, seed=config.seed, debug=debug, say=None)
    if config.run_dir is None:
        name = f"{Path(parts).resolve().name}-{settings['model']['name']}-{time.strftime('%Y%m%d-%H%M%S')}"
        config.run_dir = graph.comm.bcast(str(Path("runs") / name), root=0)
    if run["runs"] == 1:
        summary = _one_run(graph, config, settings, speak)
    else:
        summary = _many_runs(graph, config, settings, speak)
    return summary | {"run_dir": config.run_dir}, graph.rank


def _one_run(graph, config: TrainConfig, settings: dict, speak: bool) -> dict:
    import torch

    from distgnn.graph.cores import describe_binding
    from distgnn.nn import model_for
    from distgnn.train import Trainer

    torch.manual_seed(config.seed)
    network = model_for(ModelConfig(**settings["model"]), graph)
    trainer = Trainer(network, graph, config, describe=settings, say=None if speak else lambda text: None)
    for line in (*describe_binding(graph.comm), graph.schedule.caution(graph.algorithm)):
        if line:
            trainer.say(line)
    with progress_bar(f"seed {config.seed}", config.epochs, speak and graph.rank == 0) as advance:
        trainer.on_epoch = lambda record: advance(epoch_text(record), record["epoch"] + 1)
        return trainer.fit().summary


def _many_runs(graph, config: TrainConfig, settings: dict, speak: bool) -> dict:
    from distgnn.comm import raise_together
    from distgnn.train.run.run_folder import start_many, write_summary

    folder = Path(config.run_dir)
    with raise_together(graph.comm):
        if graph.rank == 0:
            start_many(folder, {"train": config.as_dict()} | settings, config.overwrite, config.resume)
    seeds = range(config.seed, config.seed + settings["run"]["runs"])
    each = [
        _one_run(graph, replace(config, seed=seed, run_dir=str(folder / f"seed-{seed}")), settings, speak)
        for seed in seeds
    ]
    summary = each[0] | {"seeds": list(seeds)}
    for name in AVERAGED:
        values = [one[name] for one in each if one.get(name) is not None]
        if values:
            summary[name] = statistics.fmean(values)
            summary[f"{name}_std"] = statistics.stdev(values) if len(values) > 1 else 0.0
    with raise_together(graph.comm):
        if graph.rank == 0:
            write_summary(folder, summary)
    return summary
