"""`dg.predict`: the rows that a model gives for every vertex, on ranks, without sampling and without training.

```
predict(model, data, ranks)
  ├─ cut_of              the partition folder, from the cache or cut: that of `dg.fit`     source.py
  ├─ call_on_ranks       predict_part: the model in evaluation mode, its rows into files
  └─ what was asked for  tensors by name, or the files                                     row_files.py
```
"""

import copy
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
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
from distgnn.fitting.progress import phases
from distgnn.fitting.source import Cut, cut_of, given_parts, is_parts
from distgnn.fitting.user_model import arguments_of, without_compile
from distgnn.predicting.aside import measured, rows_on_one
from distgnn.predicting.changed import Change, Pass
from distgnn.predicting.foreign_weights import load_foreign
from distgnn.predicting.on_rank import OUTPUT, Job, predict_part
from distgnn.predicting.pairs import decoder_of, encoder_of, names_in, pair_file
from distgnn.predicting.row_files import TABLES, Classes, Target
from distgnn.predicting.within_memory import check_limit
from distgnn.system.calls.launch import call_on_ranks, check_ranks
from distgnn.system.calls.packing import pack, unpack
from distgnn.system.output import say
from distgnn.train.run.run_folder import names_file

Tell = Callable[[str], None]


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
        model: any torch module of PyG's, DGL's or your layers, wherever it was trained. A copy of it runs in
            evaluation mode, without gradients; the one given stays as it is.
        data: the graph, as `dg.fit` takes it, or a partition folder; labels are not needed.
        ranks: processes; None: one for each socket, or for each part of a folder. One is this process itself.
        weights: a file for the model: `.pt` or `.ckpt` (a state dict, or one under "state_dict", "model_state_dict" or
            "model"; nothing in it is executed), or `.safetensors`.
        layers: names of modules inside whose rows are wanted, too: embeddings, as "convs.1".
        out: a file, `.npy`, or a table in `.parquet`, `.csv` or `.tsv`; or a folder, which gets shards of a million
            rows; of several results each has its name before the ending. None: tensors are returned.
        classes: the model gives scores of classes before softmax: the table says each vertex's class, by its word, and
            the probability in place of rows. embeddings: the rows that the last layer with weights is given, in place.
        pairs: vertices whose links are scored, in place of rows: an array [M, 2], PyG's tensor [2, M], or a file of ids
            or names (`.npy`, a table). The model's `encode` (else forward) makes rows once; its `decode(z,
            edge_label_index)` gets a piece of the pairs, and the rows of these.
        changed: ids of vertices whose features or edges are others than in `before`, an earlier answer (rows, a dict of
            them, or its `.npy`); vertices behind its rows are new. Only what lies within `hops` of them is computed
            again, on one rank: equal to a whole pass on one rank to the bit. hops: None: they are measured.
        offload: a folder of a disk, where large rows wait in files that have no names. memory: a limit of each rank,
            "8GB", beside pages of mapped files: kept, or refused before ranks are started, with what would fit. plan:
            only say what a rank would take, in a line that is returned.
        overwrite: replace such a file; partition, threads, data_root, quiet: as of `dg.fit`; seed: of the cut's split.

    Returns:
        [N, C] in the order of the data, float32 (float64 of a float64 model). A dict by name where the model gives
        several: a dict by its keys, a tuple by "0", "1", …; and where layers are named, "output" beside them. With
        `out`, the path, or a dict of paths.

    Raises:
        InputError where the model draws random numbers in evaluation mode, takes what the graph has not, or gives no
        rows of vertices; where names or shapes of weights do not fit; where `out` cannot be written. No file is left.

    Example:
        >>> import distgnn, torch
        >>> mlp = torch.nn.Linear(64, 3)
        >>> tuple(distgnn.predict(mlp, "communities:nodes=200", ranks=1, quiet=True).shape)
        (200, 3)
    """
    names = (layers,) if isinstance(layers, str) else tuple(layers)
    asked = {"layers": bool(names), "embeddings": embeddings, "classes": classes, "pairs": pairs is not None}
    asked |= {"changed": changed is not None, "memory": memory is not None, "plan": plan}
    model = _ready(model, weights, names, pairs is not None)
    target = None if out is None else Target(Path(out), overwrite, (OUTPUT, *names))
    _check_together(asked, target, before, is_parts(data) or isinstance(partition, str | Path))
    tell: Tell = (lambda line: None) if quiet else say
    wait = None if offload is None else str(offload)
    job = Job("", pack(model, type(model).__name__), names, "", not quiet, embeddings, offload=wait)
    change = None
    if changed is not None:
        graph = load_graph(data, data_root, seed) if isinstance(data, str | Path) else load_graph(data)
        _check_types(graph.types, asked)
        config: Any = partition or CutConfig()
        once = partial(rows_on_one, replace(job, speak=False, offload=None), config, threads)
        change = Change(graph, changed, _earlier(before), Pass(once, hops, config.direction, tell))
        if not change.is_most:
            again = change.rows()
            return _answer(again) if target is None else target.keep(again, graph.node_names, OUTPUT)
    with _cut(data, ranks, partition, seed, data_root, quiet, tell) as cut, _folder(target) as folder:
        _check_types(cut.manifest["graph"].get("types"), asked)
        called = None if pairs is None else names_in(cut.folder, cut.manifest)
        ends = None if pairs is None else pair_file(pairs, called, cut.manifest["num_nodes"], folder)
        job = replace(job, parts=cut.folder, folder=folder, pairs=ends)
        if memory is not None or plan:
            line = check_limit(memory, cut.folder, cut.manifest, offload is not None, partial(measured, job))
            if plan:
                return line
            tell(line)
        found, texts = _on_ranks(job, cut, threads, target is not None)
        if change is not None:
            change.check(found)
        if target is None:
            return _answer(found)
        if ends is not None:
            return target.keep(found, called, Classes() if classes else OUTPUT, pairs=np.load(ends, mmap_mode="r"))
        return target.keep(found, texts, Classes.of_graph(cut.manifest["graph"]) if classes else OUTPUT)


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


@contextmanager
def _folder(target: Target | None) -> Iterator[str]:
    """For what ranks write; of the disk of the answer."""
    place = None if target is None else target.folder
    with tempfile.TemporaryDirectory(prefix=".distgnn-predict-", dir=place) as folder:
        yield folder


def _on_ranks(job: Job, cut: Cut, threads: int | None, mapped: bool) -> tuple[dict[str, Any], dict[str, Any]]:
    """(What the model gives by name, what its rows are called). Args: mapped: rows stay in their files."""
    made = call_on_ranks(predict_part, (job,), cut.manifest["num_parts"], threads=threads)[0]
    mode: Any = "r" if mapped else None
    files = {name: Path(job.folder) / f"{place}.npy" for place, name in enumerate(made)}
    found = {name: np.load(files[name], mmap_mode=mode) if one is None else one for name, one in made.items()}
    return found, {name: np.load(one) for name, file in files.items() if (one := names_file(file)).is_file()}


def _answer(found: dict[str, Any]) -> Any:
    tensors = {name: torch.as_tensor(one) for name, one in found.items()}
    return tensors[OUTPUT] if list(tensors) == [OUTPUT] else tensors


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


@contextmanager
def _cut(
    data: Any, ranks: int | None, partition: Any, seed: int, data_root: Any, quiet: bool, tell: Tell
) -> Iterator[Cut]:
    if is_parts(data) or isinstance(partition, str | Path):
        cut = given_parts(data) if is_parts(data) else given_parts(partition, data)
        if ranks is not None and check_ranks(ranks) != cut.manifest["num_parts"]:
            raise InputError(f"{cut.folder} is for {cut.manifest['num_parts']} ranks, not {ranks}: leave ranks out")
        yield cut
        return
    count = check_ranks(ranks)
    with phases(not quiet) as progress:
        made = cut_of(data, count, partition, None, seed, data_root, tell, progress)
        cut = made.__enter__()
    try:
        yield cut
    finally:
        made.__exit__(None, None, None)


def _check_types(types: Any, asked_for: dict[str, bool]) -> None:
    given = [name for name, is_given in asked_for.items() if is_given]
    if types and given:
        raise InputError(f"{', '.join(given)}: of graphs of one type, and this one has {len(types)}: leave it out")
