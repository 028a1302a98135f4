"""`dg.predict`: the rows that a model gives for every vertex, on ranks, without sampling and without training.

```
predict(model, data, ranks)
  ├─ parts_for           the partition folder, from the cache or cut: that of `dg.fit`     source.py
  ├─ call_on_ranks       predict_part: the model in evaluation mode, its rows into files
  └─ what was asked for  tensors by name, or the files                                     row_files.py
```
"""

import copy
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn.parameter import is_lazy

from distgnn.config import CutConfig
from distgnn.datasets import load_graph
from distgnn.errors import InputError
from distgnn.fitting.source import Cut, is_parts, parts_for
from distgnn.fitting.user_model import arguments_of, without_compile
from distgnn.predicting.changed import Change, Pass
from distgnn.predicting.foreign_weights import load_foreign
from distgnn.predicting.on_rank import OUTPUT, Job, measured, predict_part, rows_on_one
from distgnn.predicting.pairs import decoder_of, encoder_of, names_in, pair_file
from distgnn.predicting.row_files import TABLES, Classes, Target
from distgnn.predicting.within_memory import check_limit
from distgnn.system.calls.launch import call_on_ranks
from distgnn.system.calls.packing import pack, unpack
from distgnn.system.output import say
from distgnn.train.run.run_folder import names_file


def predict(
    model: nn.Module,
    data: Any,
    ranks: int | None = None,
    *,
    weights: str | Path | None = None,
    layers: str | Sequence[str] = (),
    out: str | Path | None = None,
    classes: bool = False,
    embeddings: bool = False,
    pairs: Any = None,
    overwrite: bool = False,
    partition: CutConfig | str | Path | None = None,
    threads: int | None = None,
    data_root: str | Path | None = None,
    seed: int = 0,
    changed: Any = None,
    before: Any = None,
    hops: int | None = None,
    offload: str | Path | None = None,
    memory: str | int | None = None,
    plan: bool = False,
    quiet: bool = False,
) -> Any:
    """The rows that a trained model gives for all vertices, exactly, on ranks of this machine.

    Args:
        model: any torch module of PyG's, DGL's or your layers. A copy runs in evaluation mode, without gradients.
        data: as of `dg.fit`, or a partition folder; labels are not needed. ranks: None: one a socket, or a part.
        weights: `.pt` or `.ckpt` (nothing in it is executed), or `.safetensors`. layers: modules whose rows are wanted.
        out: a `.npy`, `.parquet`, `.csv` or `.tsv` file, or a folder for shards of a million rows; None: tensors.
        classes: rows are scores of classes: a table of words and probabilities. embeddings: what the last layer gets.
        pairs: of vertices, whose links are scored in place of rows: [M, 2], PyG's tensor [2, M], or a file.
        changed: ids of vertices that are others than in `before`, an earlier answer: only these and what lies within
            `hops` (None: measured) is computed again, on one rank: equal to a whole pass on one rank to the bit.
        offload: a folder of a disk for large rows. memory: a limit of each rank, "8GB". plan: only say what is taken.
        partition, threads, data_root, quiet: as of `dg.fit`. overwrite: what `out` names. seed: of the cut's split.
    Returns: [N, C] in the order of the data, float32 (float64 of a float64 model); a dict by name where there are
        several ("output" beside `layers`); with `out`, the path, or a dict of paths.
    Raises: InputError, and no file is left. docs/guide/predicting.md has more of all this.
    Example:
        >>> import distgnn, torch
        >>> tuple(distgnn.predict(torch.nn.Linear(64, 3), "communities:nodes=200", ranks=1, quiet=True).shape)
        (200, 3)
    """
    names = (layers,) if isinstance(layers, str) else tuple(layers)
    asked = {"layers": bool(names), "embeddings": embeddings, "classes": classes, "pairs": pairs is not None}
    asked |= {"changed": changed is not None, "memory": memory is not None, "plan": plan}
    model = _ready(model, weights, names, pairs is not None)
    target = None if out is None else Target(Path(out), overwrite, (OUTPUT, *names))
    _check_together(asked, target, before, is_parts(data) or isinstance(partition, str | Path))
    job = Job("", pack(model, type(model).__name__), names, "", not quiet, embeddings, offload=offload)
    whole = _WholePass(job, asked, target, threads, (lambda line: None) if quiet else say, pairs, memory)
    if changed is not None:
        graph = load_graph(data, data_root, seed)
        whole.change = Change(graph, changed, _earlier(before), whole.on_one(graph, partition or CutConfig(), hops))
        if not whole.change.is_most:
            return whole.answer(whole.change.rows(), graph.node_names)
    parts = parts_for(data, ranks, partition, seed, data_root, whole.tell, quiet)
    place = None if target is None else target.folder  # of the disk of the answer
    with parts as cut, tempfile.TemporaryDirectory(prefix=".distgnn-predict-", dir=place) as folder:
        return whole.run(cut, folder)


@dataclass
class _WholePass:
    """A pass over all vertices of a cut, and what is made of its rows."""

    job: Job
    asked: dict[str, bool]
    target: Target | None
    threads: int | None
    tell: Callable[[str], None]
    pairs: Any
    memory: str | int | None
    change: Change | None = None

    def on_one(self, graph: Any, config: Any, hops: int | None) -> Pass:
        _check_types(graph.types, self.asked)
        once = partial(rows_on_one, replace(self.job, speak=False, offload=None), config, self.threads)
        return Pass(once, hops, config.direction, self.tell)

    def run(self, cut: Cut, folder: str) -> Any:
        _check_types(cut.manifest["graph"].get("types"), self.asked)
        called = ends = None
        if self.asked["pairs"]:
            called = names_in(cut.folder, cut.manifest)
            ends = pair_file(self.pairs, called, cut.manifest["num_nodes"], folder)
        job = replace(self.job, parts=cut.folder, folder=folder, pairs=ends)
        if self.asked["memory"] or self.asked["plan"]:
            wait = job.offload is not None
            line = check_limit(self.memory, cut.folder, cut.manifest, wait, partial(measured, job))
            if self.asked["plan"]:
                return line
            self.tell(line)
        found, texts = _on_ranks(job, cut, self.threads, self.target is not None)
        if self.change is not None:
            self.change.check(found)
        if ends is not None and self.target is not None:
            about = Classes() if self.asked["classes"] else OUTPUT
            return self.target.keep(found, called, about, pairs=np.load(ends, mmap_mode="r"))
        return self.answer(found, texts, Classes.of_graph(cut.manifest["graph"]) if self.asked["classes"] else OUTPUT)

    def answer(self, found: dict[str, Any], names: Any, about: Classes | str = OUTPUT) -> Any:
        """Tensors, or the files of them."""
        if self.target is not None:
            return self.target.keep(found, names, about)
        tensors = {name: torch.as_tensor(one) for name, one in found.items()}
        return tensors[OUTPUT] if list(tensors) == [OUTPUT] else tensors


def _ready(model: Any, weights: str | Path | None, layers: Sequence[str], scores: bool) -> nn.Module:
    """The module with its weights. Args: scores: of pairs. Raises: InputError for what cannot be run."""
    model = without_compile(model)
    if not isinstance(model, nn.Module):
        raise InputError(f"model is a {type(model).__name__}: give a torch module; of a run, dg.load_result(run).model")
    known = dict(model.named_modules())
    for name in layers:
        if name not in known or not name:
            raise InputError(f"the model has no module {name!r}: it has {', '.join(one for one in known if one)}")
    if weights is not None:
        model = load_foreign(unpack(pack(model, type(model).__name__)), weights)
    if any(map(is_lazy, (*model.parameters(), *model.buffers()))):
        raise InputError(f"{type(model).__name__} has weights without numbers (a lazy module): load its weights first")
    called = model
    if scores:
        decoder_of(model)
        called = copy.copy(model)
        called.forward = encoder_of(model)
    arguments_of(called)  # for its error
    return model


def _check_together(asked: dict[str, bool], target: Target | None, before: Any, is_cut: bool) -> None:
    """Raise InputError for what does not go together. Args: is_cut: is there a partition folder in place of a graph?"""
    for are, line in (
        (
            asked["pairs"] and (asked["layers"] or asked["embeddings"] or asked["changed"]),
            "pairs give scores of links: no layers, no embeddings, and nothing changed beside them",
        ),
        (asked["classes"] and asked["embeddings"], "classes are of scores, and embeddings are none: choose one"),
        (
            asked["classes"] and (target is None or target.out.suffix not in TABLES),
            f"classes are written into tables: give out a name in {', '.join(TABLES)}",
        ),
        (
            asked["changed"] and (is_cut or asked["classes"]),
            "changed needs the graph itself, and gives rows: no partition folder, and no classes",
        ),
        (
            asked["changed"] and (asked["memory"] or asked["plan"]),
            "memory and plan are of a pass over all vertices: leave them, or changed, out",
        ),
        (
            before is not None and not asked["changed"],
            "before is an earlier answer: give changed, the vertices that are others now",
        ),
    ):
        if are:
            raise InputError(line)


def _on_ranks(job: Job, cut: Cut, threads: int | None, mapped: bool) -> tuple[dict[str, Any], dict[str, Any]]:
    """(What the model gives by name, what its rows are called). Args: mapped: rows stay in their files."""
    made = call_on_ranks(predict_part, (job,), cut.manifest["num_parts"], threads=threads)[0]
    mode: Any = "r" if mapped else None
    files = {name: Path(job.folder) / f"{place}.npy" for place, name in enumerate(made)}
    found = {name: np.load(files[name], mmap_mode=mode) if one is None else one for name, one in made.items()}
    return found, {name: np.load(one) for name, file in files.items() if (one := names_file(file)).is_file()}


def _earlier(before: Any) -> dict[str, np.ndarray]:
    """An earlier answer by the names of its results."""
    if before is None:
        raise InputError("changed needs before=, the rows of an earlier answer")
    if not isinstance(before, dict):
        before = {OUTPUT: before}
    try:
        read = {name: np.load(one, "r") if isinstance(one, str | Path) else one for name, one in before.items()}
    except (OSError, ValueError, EOFError) as error:
        raise InputError(f"before cannot be read as a .npy file: {error}") from error
    return {name: np.asarray(one) for name, one in read.items()}


def _check_types(types: Any, asked_for: dict[str, bool]) -> None:
    given = [name for name, is_given in asked_for.items() if is_given]
    if types and given:
        raise InputError(f"{', '.join(given)}: of graphs of one type, and this one has {len(types)}: leave it out")
