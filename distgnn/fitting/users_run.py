"""What a run of `dg.fit` has beside settings: a user's model on each rank, one seed for all, and predictions."""

import contextlib
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from distgnn.errors import InputError
from distgnn.fitting.user_model import adapt, draw_anew, not_given, without_compile
from distgnn.nn import distribute
from distgnn.ops.gradients import is_rows
from distgnn.system.calls.packing import pack, unpack
from distgnn.system.launch import under_mpi
from distgnn.system.output import say
from distgnn.train.predict import write_best
from distgnn.train.run.run_folder import PREDICTIONS
from distgnn.train.users_model import run_model, sees_rows


def make_model(graph: Any, packed: bytes, several: bool, speak: bool) -> tuple[nn.Module, bytes | None]:
    """The user's module for this graph, and what their function made, packed. Args: several: seeds."""
    model, made = unpack(packed), None
    if not isinstance(model, nn.Module):
        model = without_compile(model(graph))
        if not isinstance(model, nn.Module):
            raise InputError(f"the function given as model made a {type(model).__name__}: expected a torch module")
        has_tables = any(map(is_rows, model.parameters()))  # which all ranks pack
        made = pack(model, type(model).__name__) if graph.rank == 0 or has_tables else b""
    elif several:
        draw_anew(model)
    model = adapt(model)
    if not sees_rows(model, graph):
        distribute(model, graph)
    line = not_given(model, graph)
    if line is not None and speak and graph.rank == 0:
        say(line)
    return model, made


def predict(trainer: Any) -> None:
    """Write what the best weights give into the run folder. Collective: yes."""
    trainer.model.eval()
    with torch.no_grad():
        rows = run_model(trainer.model, trainer.whole)
    out = str(Path(trainer.config.run_dir) / PREDICTIONS)
    write_best(trainer.rows, trainer.model, rows, trainer.config, out)


@contextlib.contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Within, all generators that a user's code may draw from follow the seed; a caller's own go on as before."""
    before, alone = (random.getstate(), np.random.get_state()), not under_mpi()
    with torch.random.fork_rng(devices=[], enabled=alone):
        seed_all(seed)
        try:
            yield
        finally:
            if alone:
                random.setstate(before[0])
                np.random.set_state(before[1])


def seed_all(seed: int) -> None:
    random.seed(seed)
    np.random.seed(seed % (1 << 32))
    torch.manual_seed(seed)
