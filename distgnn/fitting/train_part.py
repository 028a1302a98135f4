"""What each rank of `dg.fit` does: it trains as `distgnn train` does, with a user's model and objects, and predicts."""

import contextlib
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from distgnn.config import Settings
from distgnn.errors import InputError
from distgnn.fitting.on_rank import Own, check_machines, train_by_recipe
from distgnn.fitting.user_model import adapt, draw_anew, not_given, without_compile
from distgnn.nn import distribute
from distgnn.ops.gradients import is_rows
from distgnn.system.calls.packing import pack, unpack
from distgnn.system.launch import under_mpi
from distgnn.system.output import say
from distgnn.train.predict import write_best
from distgnn.train.run.run_folder import PREDICTIONS
from distgnn.train.run.within_memory import MemoryLimit
from distgnn.train.users_model import run_model, sees_rows


@dataclass
class Job:
    """What ranks are given.

    Args:
        model: a packed module, or a packed function of the graph that makes one; None: the one of the settings.
        trainer: objects for the Trainer; limit: of a rank's memory; folds: see `Own`.
        recipe, given: see `train_by_recipe`.
    """

    parts: str
    manifest: dict[str, Any]
    settings: Settings
    model: bytes | None = None
    trainer: dict[str, Any] = field(default_factory=dict)
    limit: MemoryLimit = field(default_factory=MemoryLimit)
    debug: bool = False
    speak: bool = True
    folds: int = 0
    recipe: str | None = None
    given: set[str] = field(default_factory=set)


def train_part(job: Job) -> bytes | None:
    """Train on this rank's part. Returns: what a function of the user's made, untrained, from rank 0. Collective."""
    made: list[bytes] = []

    def make_model(graph: Any) -> nn.Module:
        model = unpack(job.model or b"")
        if isinstance(model, nn.Module) and job.settings.run.runs > 1:
            draw_anew(model)
        if not isinstance(model, nn.Module):
            model = without_compile(model(graph))
            if not isinstance(model, nn.Module):
                raise InputError(f"the function given as model made a {type(model).__name__}: expected a torch module")
            has_tables = any(map(is_rows, model.parameters()))  # which all ranks pack
            made.append(pack(model, type(model).__name__) if graph.rank == 0 or has_tables else b"")
        model = adapt(model)
        if not sees_rows(model, graph):
            distribute(model, graph)
        line = not_given(model, graph)
        if line is not None and job.speak and graph.rank == 0:
            say(line)
        return model

    def after(trainer: Any) -> None:
        run, config = str(trainer.config.run_dir), trainer.config
        trainer.model.eval()
        with torch.no_grad():
            rows = run_model(trainer.model, trainer.whole)
        write_best(trainer.rows, trainer.model, rows, config, str(Path(run) / PREDICTIONS))

    own = Own(None if job.model is None else make_model, job.trainer, _seed, after, job.folds)
    with _seeded(job.settings.train.seed):
        settings, lines = check_machines(job.parts, job.manifest, job.settings, job.limit, job.model is None)
        for line in lines if job.speak else ():
            say(line)
        how = settings, job.debug, job.speak, own
        train_by_recipe(job.recipe, job.given, job.parts, job.manifest, *how)
    return made[0] if made else None


@contextlib.contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """Within, all generators that a user's code may draw from follow the seed; a caller's own go on as before."""
    before, alone = (random.getstate(), np.random.get_state()), not under_mpi()
    with torch.random.fork_rng(devices=[], enabled=alone):
        _seed(seed)
        try:
            yield
        finally:
            if alone:
                random.setstate(before[0])
                np.random.set_state(before[1])


def _seed(seed: int) -> None:
    random.seed(seed)
    np.random.seed(seed % (1 << 32))
    torch.manual_seed(seed)
