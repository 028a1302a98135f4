"""`dg.fit`: one call from a graph in memory to a trained model.

```
fit(data, model, ranks)
  ├─ read_keywords         settings and objects, checked before anything starts     keywords.py
  ├─ parts_for             the partition folder, from the cache or cut              source.py, cut_cache.py
  ├─ call_on_ranks         fit_job on each rank: the training of distgnn train      user_model.py, on_rank.py
  └─ FitResult             read from the run folder                                 result.py
```
"""

import os
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from torch import nn

from distgnn.config import CutConfig, ModelConfig, Settings, read_sections
from distgnn.config.extras import searches
from distgnn.config.recipes import for_graph, with_patience
from distgnn.errors import InputError, RunError
from distgnn.fitting.cut_cache import cache_root, give_up
from distgnn.fitting.keywords import Keywords, read_keywords
from distgnn.fitting.live_plot import LivePlot, following
from distgnn.fitting.on_rank import Job, fit_job
from distgnn.fitting.result import FitResult, FitResults
from distgnn.fitting.source import BY_LABELS, Cut, parts_for
from distgnn.fitting.user_model import arguments_of, without_compile
from distgnn.partition.folder.reader import partition_files
from distgnn.system.atomic import check_target, new_folder
from distgnn.system.calls.launch import call_on_ranks, check_ranks
from distgnn.system.calls.packing import pack, unpack
from distgnn.system.jobs.own_rank import forget_segment
from distgnn.system.output import say
from distgnn.train.predict import ON_VERTICES
from distgnn.train.run.run_folder import check_free
from distgnn.train.run.within_memory import MemoryLimit


def fit(
    data: Any,
    model: "str | ModelConfig | nn.Module | Callable[[Any], nn.Module] | None" = None,
    ranks: int | None = None,
    *,
    epochs: int | None = None,
    out: str | Path | None = None,
    partition: CutConfig | str | Path | None = None,
    split: tuple[float, float, float] | None = None,
    seed: int = 0,
    threads: int | None = None,
    hosts: Sequence[str] | str | None = None,
    data_root: str | Path | None = None,
    quiet: bool = False,
    **options: Any,
) -> Any:
    """Cut a graph, train a model on ranks of this machine, and give the result; all in one call.

    Args:
        data: a `dgl.DGLGraph`, PyG `Data`, scipy matrix, NetworkX graph, `GraphData`; a dict of edge_index, x, y and
            masks; a graph folder, a data set's name, `communities:…`; or a partition folder.
        model: a name (`sage`, `gcn`, `gat`, …) or `ModelConfig`; or any torch module of PyG's, DGL's or your layers; or
            a function of the graph that makes one. It is copied to the ranks: the one given stays as it is. None: sage;
            where labels are few and features sparse appnp, and other defaults too, which a line says.
        ranks: processes; None: one for each socket, or for each part of a folder. One is this process itself.
        epochs: the limit (default 200). A run stops earlier after `patience` evaluations (default: of 50 epochs)
            in which the validation metric, as a mean of three, was not better; 0 never stops it.
        out: folder that keeps `run` and `parts`; None: the run goes with the result, the parts stay in the cache.
        partition: a `CutConfig`, or a partition folder of this graph; None: the default cut. Cuts are kept, by the
            graph's content and the options: see `distgnn cache`.
        split: shares of train, valid and test, dealt out at random by `seed`, class by class; None: the data's own, and
            where it has none 0.6, 0.2, 0.2.
        seed: of weights, dropout, a random split, and of Python's, numpy's and torch's generators on ranks.
        threads: per rank; data_root: where named graphs lie; quiet: nothing but errors is printed.
        hosts: machines, as of `launch`, in place of ranks; all must see `out`, or the cache (DISTGNN_CACHE).
        options: every field of `TrainConfig`, of `ModelConfig` (models by name), and of loading (dtype, algorithm,
            wire, feat_norm, …); `runs`, `folds`; `memory`, `recipe`; the Trainer's optimizer, scheduler,
            loss, metrics and callbacks as objects.

    Returns: FitResult: test_accuracy, history, predict(), model, save(). With `runs` (seeds) or `folds` over one cut a
        `FitResults`: a list of them, which prints mean and deviation.

    Raises:
        InputError for keywords that there are not, and settings or graphs that cannot be trained, before ranks start.
        RunStopped after Ctrl-C or a notebook's stop button: the epoch is finished and a checkpoint written; the same
        call with `resume=True` goes on. What a rank raises is raised here.

    Notes: `distgnn train` on the same cut has the same losses, to the bit. No rank outlives the caller.

    Example:
        >>> import distgnn
        >>> result = distgnn.fit("communities:nodes=200", "gcn", ranks=1, epochs=3, quiet=True)
        >>> len(result.history), tuple(result.predict().shape)
        (3, (200, 10))
    """
    forget_segment()  # this module has started MPI
    if not isinstance(partition, CutConfig | str | Path | None):
        raise InputError(f"partition is {partition!r}: give a CutConfig, or a folder; the number of parts is ranks")
    if split is not None and (isinstance(split, str) or not isinstance(split, Sequence)):
        raise InputError(f"split is {split!r}: expected shares of train, valid and test, as (0.6, 0.2, 0.2)")
    options |= ({"seed": seed} if seed else {}) | ({} if epochs is None else {"epochs": epochs})
    given, model = model, without_compile(model)
    asked = read_keywords(model, options)
    packed = None if model is None or isinstance(model, str | ModelConfig) else _packed(model)
    limit, tell = _check_early(asked, out, packed is None), (lambda line: None) if quiet else say
    if model is not given:
        tell("torch.compile is left out: the module in it is trained, its aggregations by compiled kernels")
    if any(kind.__name__ == "LightningModule" for kind in type(model).__mro__):
        tell("of a LightningModule only forward is called: give loss=, optimizer= and callbacks= where it has its own")
    if hosts is not None:
        ranks = check_ranks(ranks, hosts)
    task = asked.settings.train.task if "task" in asked.given else BY_LABELS
    with parts_for(data, ranks, partition, asked.settings.train.seed, data_root, tell, quiet, split, task) as cut:
        settings, picked = _checked(asked, cut, out, packed is None, model)
        if picked:
            tell(picked)
        if settings.train.resume and not list(Path(str(settings.train.run_dir)).rglob("checkpoint/epoch-*")):
            tell("resume=True, and there is no checkpoint of this cut and model: it starts from the beginning")
        run = str(settings.train.run_dir)
        temporary = Path(run).parent == cache_root() / "runs"
        try:
            more = {name: asked.more[name] for name in ("debug", "folds", "recipe") if name in asked.more}
            job = Job(cut.folder, cut.manifest, settings, packed, asked.objects, limit, given=asked.given, **more)
            made = _on_ranks(replace(job, speak=not quiet, of_fit=True, predicts=True), threads, hosts)
        except RunError:  # a signal, a rank that was killed: there may be a checkpoint, and there are logs
            raise
        except BaseException:
            if temporary:
                give_up(run)
            raise
        if out is not None:
            _keep_parts(cut.folder, Path(out) / "parts")
    # The user's module, untrained: its own copy, or what the function has made on the ranks
    module = unpack(made) if made else model if isinstance(model, nn.Module) else None
    is_dgl = type(data).__module__.split(".")[0] == "dgl"
    made_by: Any = FitResult if settings.run.runs == 1 and not asked.more.get("folds") else FitResults
    return made_by(run, module, "dgl" if is_dgl else "pyg", temporary)


def _on_ranks(job: Job, threads: int | None, hosts: Sequence[str] | str | None) -> bytes | None:
    """Train on as many ranks as the cut is for. Returns: as `fit_job`."""
    num_ranks = check_ranks(job.manifest["num_parts"])
    callbacks, train = list(job.trainer.get("callbacks", ())), job.settings.train
    started = num_ranks > 1 or hosts is not None
    plots = [one for one in callbacks if isinstance(one, LivePlot)] if started else []  # they stay in this process
    if plots:
        others = [one for one in callbacks if one not in plots]
        job = replace(job, trainer=job.trainer | {"callbacks": others})
    with following(plots, Path(str(train.run_dir)), train.resume):
        return call_on_ranks(fit_job, (job,), num_ranks, threads=threads, graceful=True, hosts=hosts)[0]


def _packed(model: Any) -> bytes:
    if isinstance(model, type):
        raise InputError(f"model is the class {model.__name__}: give {model.__name__}(...), or a function of the graph")
    if not isinstance(model, nn.Module) and not callable(model):
        raise InputError(f"model is a {type(model).__name__}: give a name, a torch module, or a function of the graph")
    if isinstance(model, nn.Module):
        arguments_of(model)  # for its error
        saved = model.state_dict()
        lost = next((name for name, _ in model.named_parameters() if name not in saved), None)
        if lost is not None:
            raise InputError(
                f"{lost} of {type(model).__name__} is not in its state_dict(), so what it learns would be lost: PyG's "
                "Linear is so under torch.nn.utils.prune; put a torch.nn.Linear in its place before"
            )
    return pack(model, type(model).__name__ if isinstance(model, nn.Module) else "the function given as model")


def _checked(asked: Keywords, cut: Cut, out: Any, by_name: bool, model: Any) -> tuple[Settings, str]:
    """The settings of this run, with a run folder; and what a recipe has picked."""
    settings, train, resume = asked.settings, asked.settings.train, asked.settings.train.resume
    name = settings.model.name if by_name else getattr(model, "__qualname__", type(model).__name__)
    run_dir = str(Path(out) / "run") if out is not None else train.run_dir or _own_run_dir(f"{cut.key}-{name}", resume)
    settings = replace(settings, train=replace(train, run_dir=run_dir))
    file = Path(run_dir) / "config.toml"
    if resume and file.is_file():
        settings = settings.with_saved(read_sections(file), file, asked.given)
    else:
        settings = with_patience(settings, asked.given)
    defaults = by_name and not asked.objects.keys() & {"optimizer", "loss"}  # of our models
    return for_graph(settings, asked.given, asked.more.get("recipe"), cut.manifest, by_name, defaults)


def _check_early(asked: Keywords, out: Any, by_name: bool) -> MemoryLimit:
    """Raise what can be refused before a graph is cut; the limit of a rank's memory."""
    train, memory = asked.settings.train, asked.more.get("memory")
    if not train.resume:  # else the run's own settings may be others
        asked.settings.checked()
    _check_several(asked)
    recipe = asked.more.get("recipe")
    if recipe in searches() and (not by_name or asked.more.get("folds")):
        raise InputError(f"recipe {recipe} chooses among models by name, by one split: leave model, and folds, out")
    if out is not None and train.run_dir is not None:
        raise InputError("out and run_dir are both given: out has the run folder and the parts")
    run_dir = train.run_dir if out is None else Path(out) / "run"
    if run_dir is not None:
        check_free(Path(run_dir), train.overwrite, train.resume)
    if out is not None:
        check_target(Path(out) / "parts", partition_files, overwrite=True)
    if memory is not None and not by_name:
        raise InputError("memory is compared with an estimate for models by name: leave it out for your own")
    return MemoryLimit.parse(memory)


def _check_several(asked: Keywords) -> None:
    """Raise InputError for seeds and folds that cannot be trained one after the other."""
    settings, folds = asked.settings, asked.more.get("folds", 0)
    if not isinstance(folds, int) or isinstance(folds, bool) or not (folds == 0 or folds >= 3):
        raise InputError(f"folds is {folds!r}: one tests, one validates, others train, so give a number from 3 on")
    if folds and settings.run.runs > 1:
        raise InputError("runs and folds are both given: each trains several times, choose one")
    if folds and settings.train.task not in ON_VERTICES:
        raise InputError(f"folds are of labelled vertices: task {settings.train.task} has a split of edges")
    if folds and settings.train.inductive and settings.run.feat_norm != "none":
        raise InputError("feat_norm of inductive training is of the split's training vertices: leave it or folds out")
    plots = any(isinstance(one, LivePlot) for one in asked.objects.get("callbacks", ()))
    if plots and (folds or settings.run.runs > 1):
        raise InputError("LivePlot shows one run: leave it, or runs and folds, out")


def _own_run_dir(name: str, resume: bool) -> str:
    """A run folder in the cache: a new one, or to resume the newest of this cut and model that was stopped."""
    place = "".join(letter if letter.isalnum() or letter in "-_" else "_" for letter in name)
    folder = cache_root() / "runs"
    begun = [path for path in folder.glob(f"{place}-*") if list(path.glob("checkpoint/epoch-*"))] if resume else []
    stopped = [path for path in begun if not (path / "summary.json").exists()]
    if stopped:
        return str(max(stopped, key=lambda path: path.stat().st_mtime_ns))
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return str(folder / f"{place}-{time.strftime('%Y%m%d%H%M%S')}{os.urandom(3).hex()}")


def _keep_parts(folder: str, kept: Path) -> None:
    """The partition folder beside the run: the same files, where the file system can; they are never changed."""

    def take(source: str, target: str) -> None:
        try:
            os.link(source, target)
        except OSError:
            shutil.copy2(source, target)

    if not kept.exists() or not kept.samefile(folder):
        with new_folder(kept, partition_files, overwrite=True) as new:
            shutil.copytree(folder, new, copy_function=take, dirs_exist_ok=True)
