"""The race: all settings train for some epochs, the better ones go on, and the best one is trained from its beginning.

Successive halving (Jamieson and Talwalkar, AISTATS'16). Each attempt is a run of its own beside the run folder, which
the next round resumes, so that a race that was stopped goes on, too.
"""

import math
import shlex
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from distgnn.config import Settings
from distgnn.config.option import option_name, rarely_set
from distgnn.config.settings import OF_ONE_RUN, SECTION_OF
from distgnn.config.task import LOWER_IS_BETTER, human_metric
from distgnn.config.train import LEAST_PATIENCE
from distgnn.errors import DistGNNError, InputError, RunStopped, on_all_ranks
from distgnn.extras.tuned.settings import candidates
from distgnn.fitting.on_rank import Job, Trained, check_machines, default_run_dir, train_on_this_rank
from distgnn.system.launch import import_mpi
from distgnn.system.output import say
from distgnn.train.predict import ON_VERTICES
from distgnn.train.run.within_memory import MemoryLimit

EPOCHS = 1000
ROUNDS = ((1 / 16, 2), (1 / 8, 2), (1 / 4, 99))  # share of the epochs, and one of how many goes on
PATIENT_SHARE = 1 / 5  # of the epochs, without a better validation metric


@dataclass
class Attempt:
    """Args: chosen: names of the options that it brings; score: of validation, higher is better."""

    name: str
    settings: Settings
    chosen: set[str]
    score: float = -math.inf


def race(job: Job) -> Trained:
    """Choose settings that are not `given`, and train with them; as `train_on_this_rank`. Collective: yes.

    Raises: InputError where there is nothing to choose by, or no setting goes with what is given.
    """
    comm, given, parts, settings = import_mpi().COMM_WORLD, job.given, job.parts, job.settings
    graph, train = job.manifest["graph"], settings.train
    if train.task not in ON_VERTICES or not graph.get("valid"):
        lacks = f"task {train.task}" if train.task not in ON_VERTICES else "a graph without them"
        raise on_all_ranks(InputError(f"recipe tuned chooses by vertices for validation: leave it out of {lacks}"))
    if train.run_dir is None:
        train = replace(train, run_dir=comm.bcast(default_run_dir(parts, "tuned")))
    epochs = train.epochs if "epochs" in given else EPOCHS
    patient = max(LEAST_PATIENCE, math.ceil(PATIENT_SHARE * epochs / train.eval_every)) * train.may_stop
    patience = train.patience if "patience" in given else patient
    settings = replace(settings, train=replace(train, epochs=epochs, patience=patience))
    tell = say if job.speak and comm.rank == 0 else lambda *line: None
    folder = Path(f"{train.run_dir}-tries")
    attempts = list(_attempts(parts, job.manifest, settings, given, tell))
    if not attempts:
        raise on_all_ranks(InputError("no setting of recipe tuned goes with what is given: leave the recipe out"))
    objects = {name: one for name, one in job.trainer.items() if name != "callbacks"}
    tries = replace(job, predicts=False, folds=0, trainer=objects, speak=False)
    for place, (share, keeps) in enumerate(ROUNDS if len(attempts) > 1 else ()):
        budget = max(1, round(share * epochs))
        for number, attempt in enumerate(attempts):
            tried = _for_a_while(attempt, folder, budget, place > 0 or train.resume)
            try:
                summary = train_on_this_rank(replace(tries, settings=tried)).summary
            except RunStopped:
                raise
            except DistGNNError as error:  # its loss is not finite
                if not error.agreed:
                    raise
                tell(f"recipe tuned leaves {attempt.name} out: {error}")
                attempt.score = -math.inf
                continue
            metric, valid = summary["metric"], summary["valid_metric"]
            attempt.score = -valid if metric in LOWER_IS_BETTER else valid
            words = f"{attempt.name}: valid {metric} {human_metric(metric, valid)}"
            tell(f"recipe tuned, {budget} epochs, {number + 1} of {len(attempts)}: {words}")
        attempts = sorted(attempts, key=lambda one: -one.score)[: -(-len(attempts) // keeps)]
        if attempts[0].score == -math.inf:
            raise on_all_ranks(InputError("no setting of recipe tuned has a finite loss: look at the features"))
    best = attempts[0]
    line = train_line(parts, best.settings, given | best.chosen | {"epochs", "patience"})
    tell(f"recipe tuned chose {best.name}; this trains it again:")
    tell(line, "")
    done = train_on_this_rank(replace(job, settings=best.settings))
    if comm.rank == 0:
        shutil.rmtree(folder, ignore_errors=True)
    return done


def _attempts(
    parts: str, manifest: dict[str, Any], settings: Settings, given: set[str], tell: Callable[..., Any]
) -> Iterator[Attempt]:
    """The settings that go with what is given, and fit into memory. Collective: yes."""
    for name, options in candidates(manifest["graph"], given, settings.model.name).items():
        try:
            one = settings.with_options(options).checked()
            one.check_graph(manifest["graph"])
            one, _ = check_machines(parts, manifest, one, MemoryLimit())
        except InputError as error:
            tell(f"recipe tuned leaves {name} out: {error}")
        else:
            yield Attempt(name, one, set(options))


def _for_a_while(attempt: Attempt, folder: Path, epochs: int, goes_on: bool) -> Settings:
    """The settings of an attempt up to some epochs, in a run folder of its own."""
    settings, train = attempt.settings, attempt.settings.train
    run_dir, rate = str(folder / attempt.name.replace(", ", "-")), train.lr_schedule if train.may_stop else "constant"
    tried = replace(train, epochs=epochs, patience=0, lr_schedule=rate, run_dir=run_dir, resume=goes_on)
    tried = replace(tried, overwrite=not goes_on, log="", trace=False, memory_report=False)
    return replace(settings, train=tried, run=replace(settings.run, runs=1))


def train_line(parts: str, settings: Settings, names: set[str]) -> str:
    """A command that trains with these settings, of which `names` are said."""
    words = ["distgnn", "train", parts]
    for group in (getattr(settings, name) for name in SECTION_OF):
        for one in fields(group):
            name, value = option_name(one), getattr(group, one.name)
            if name not in names or one.name in OF_ONE_RUN or value is None:
                continue
            flag = name.replace("_", "-")
            if name in rarely_set(type(group)):
                words += ["--set", f"{name}={value}"]
            else:
                words += [f"--{'' if value else 'no-'}{flag}"] if isinstance(value, bool) else [f"--{flag}", str(value)]
    return shlex.join(words)
