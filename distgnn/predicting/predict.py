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
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn.parameter import is_lazy

from distgnn import kernels
from distgnn.config import CutConfig
from distgnn.datasets import GraphData, load_graph
from distgnn.errors import InputError, on_all_ranks
from distgnn.fitting.progress import compiling, phases
from distgnn.fitting.source import Cut, cut_of, given_parts, is_parts
from distgnn.fitting.user_model import adapt, arguments_of, not_given, without_compile
from distgnn.graph.face.typed_graph import TypedGraph
from distgnn.graph.loader import load
from distgnn.graph.task_rows import TaskRows
from distgnn.kernels.runtime.tuning import OF_JOB
from distgnn.ops.edges.arc_blocks import leaf
from distgnn.ops.edges.on_arcs import in_blocks
from distgnn.partition import partition_graph
from distgnn.predicting.changed import Pass, rows_again
from distgnn.predicting.foreign_weights import load_foreign
from distgnn.predicting.pairs import decoder_of, encoder_of, names_in, pair_file, score_pairs
from distgnn.predicting.row_by_row import RowByRow
from distgnn.predicting.row_files import TABLES, Classes, Target
from distgnn.predicting.within_memory import check_limit, watched_peak
from distgnn.rows import RowTensor, local_of
from distgnn.rows.align import in_space
from distgnn.system.calls.launch import call_on_ranks, check_ranks
from distgnn.system.calls.packing import pack, unpack
from distgnn.system.output import say
from distgnn.train.last_layer import LastLayer
from distgnn.train.predict import write_names, write_rows
from distgnn.train.run.run_folder import names_file
from distgnn.train.users_model import named_faults, sees_rows

OUTPUT = "output"  # the name of what a model gives, beside those of layers
DTYPES = {torch.float64: "float64", torch.bfloat16: "bfloat16"}


@dataclass(frozen=True)
class Job:
    """What ranks are given.

    Args: model: packed; layers: modules whose rows are wanted, too; folder: for the files; embeddings: what the last
        layer is given, in place of what the model gives; odd: a vertex whose features are to be no numbers; offload:
        see `predict`.
    """

    parts: str
    model: bytes
    layers: tuple[str, ...]
    folder: str
    speak: bool
    embeddings: bool = False
    odd: int | None = None
    offload: str | None = None
    pairs: str | None = None


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
            "8GB", beside pages of mapped files: kept, or refused before ranks are started, with what would fit.
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
    model = without_compile(model)
    if not isinstance(model, nn.Module):
        raise InputError(f"model is a {type(model).__name__}: give a torch module; of a run, dg.load_result(run).model")
    names = (layers,) if isinstance(layers, str) else tuple(layers)
    _check_layers(model, names)
    if weights is not None:
        model = load_foreign(unpack(pack(model, type(model).__name__)), weights)
    if any(map(is_lazy, (*model.parameters(), *model.buffers()))):
        raise InputError(f"{type(model).__name__} has weights without numbers (a lazy module): load its weights first")
    asked = model
    if pairs is not None:
        decoder_of(model)
        asked = copy.copy(model)
        asked.forward = encoder_of(model)
        if names or embeddings or changed is not None:
            raise InputError("pairs give scores of links: no layers, no embeddings, and nothing changed beside them")
    arguments_of(asked)  # for its error
    target = None if out is None else Target(Path(out), overwrite, (OUTPUT, *names))
    if classes and embeddings:
        raise InputError("classes are of scores, and embeddings are none: choose one")
    if classes and (target is None or target.out.suffix not in TABLES):
        raise InputError(f"classes are written into tables: give out a name in {', '.join(TABLES)}")
    packed, tell = pack(model, type(model).__name__), (lambda line: None) if quiet else say
    if changed is not None:
        if is_parts(data) or isinstance(partition, str | Path) or classes:
            raise InputError("changed needs the graph itself, and gives rows: no partition folder, and no classes")
        if memory is not None:
            raise InputError("memory is of a pass over all vertices: leave it, or changed, out")
        graph = load_graph(data, data_root, seed) if isinstance(data, str | Path) else load_graph(data)
        _check_types(graph.types, {"changed": True})
        config = partition or CutConfig()
        how = Pass(partial(_rows_of, packed, names, embeddings, config, threads), hops, config.direction, tell)
        again = rows_again(graph, changed, _earlier(before), how)
        if again is not None:
            return _answer(again) if target is None else target.keep(again, graph.node_names, OUTPUT)
    with _cut(data, ranks, partition, seed, data_root, quiet, tell) as cut:
        asked_for = {"layers": bool(names), "embeddings": embeddings, "classes": classes, "pairs": pairs is not None}
        _check_types(cut.manifest["graph"].get("types"), asked_for | {"memory": memory is not None})
        place = None if target is None else target.folder
        with tempfile.TemporaryDirectory(prefix=".distgnn-predict-", dir=place) as folder:
            wait = None if offload is None else str(offload)
            ends, called = None, None
            if pairs is not None:
                called = names_in(cut.folder, cut.manifest)
                ends = pair_file(pairs, called, cut.manifest["num_nodes"], folder)
            job = Job(cut.folder, packed, names, folder, not quiet, embeddings, offload=wait, pairs=ends)
            if memory is not None:
                tell(check_limit(memory, cut.folder, cut.manifest, offload is not None, partial(_measured, job)))
            count = cut.manifest["num_parts"]
            made = call_on_ranks(predict_part, (job,), count, threads=threads)[0]
            mode: Any = None if target is None else "r"
            files = {name: Path(folder) / f"{place}.npy" for place, name in enumerate(made)}
            found = {n: np.load(files[n], mmap_mode=mode) if one is None else one for n, one in made.items()}
            if target is not None:
                if ends is not None:
                    about = Classes() if classes else OUTPUT
                    return target.keep(found, called, about, pairs=np.load(ends, mmap_mode="r"))
                texts = {name: np.load(one) for name, file in files.items() if (one := names_file(file)).is_file()}
                words = Classes.of_graph(cut.manifest["graph"]) if classes else OUTPUT
                return target.keep(found, texts, words)
            return _answer(found)


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


def _rows_of(
    packed: bytes,
    names: tuple[str, ...],
    embeddings: bool,
    config: CutConfig,
    threads: int | None,
    graph: GraphData,
    odd: int | None = None,
) -> dict[str, np.ndarray]:
    """The rows of a graph in memory, on this process alone. Args: odd: a vertex whose features are no numbers."""
    with _alone(graph, config) as folder:
        job = Job(f"{folder}/parts", packed, names, folder, False, embeddings, odd)
        made = call_on_ranks(predict_part, (job,), 1, threads=threads)[0]
        for name, one in made.items():
            if one is not None:
                raise InputError(f"changed is for rows of vertices, and {name} is none: leave changed out")
        return {name: np.load(Path(folder) / f"{place}.npy") for place, name in enumerate(made)}


def _measured(job: Job, tiny: GraphData, small: GraphData, offload: bool) -> int:
    """Run the model of a job on two graphs, in a process of its own. For its result see `Measure`."""
    config = CutConfig()
    with _alone(tiny, config) as first, _alone(small, config) as second:
        wait, pairs = (job.offload or second) if offload else None, None if job.pairs is None else ""
        of_both = [
            replace(job, parts=f"{folder}/parts", folder=folder, offload=wait, pairs=pairs, speak=False)
            for folder in (first, second)
        ]
        return int(call_on_ranks(_peak_of_second, (of_both,), 1, apart=True)[0])


def _peak_of_second(jobs: list[Job]) -> int:
    predict_part(jobs[0])  # kernels are compiled
    with watched_peak() as peak:
        predict_part(jobs[1])
    return peak[0]


@contextmanager
def _alone(graph: GraphData, config: CutConfig) -> Iterator[str]:
    """A folder that holds `parts`, of one rank."""
    with tempfile.TemporaryDirectory(prefix="distgnn-predict-") as folder:
        partition_graph(graph, 1, Path(folder) / "parts", config, say=lambda line: None)
        yield folder


@contextmanager
def _cut(
    data: Any, ranks: int | None, partition: Any, seed: int, data_root: Any, quiet: bool, tell: Callable[[str], None]
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


def _check_layers(model: nn.Module, names: Sequence[str]) -> None:
    known = dict(model.named_modules())
    for name in names:
        if name not in known or not name:
            raise InputError(f"the model has no module {name!r}: it has {', '.join(one for one in known if one)}")


def predict_part(job: Job) -> dict[str, Any]:
    """Run the model on this rank's part and write its rows. Collective: yes.

    Returns: by name None for what is in a file, or a tensor that is not of rows, of rank 0.
    """
    model = unpack(job.model)
    wanted = next((DTYPES[one.dtype] for one in model.parameters() if one.dtype in DTYPES), "float32")
    with compiling(job.speak), torch.no_grad():
        products = {name: getattr(kernels.Tuning(), name) for name in OF_JOB}  # a pass has the same bits anywhere
        how: dict[str, Any] = {"dtype": wanted, "cache_first": False, "products": products, "offload": job.offload}
        graph: Any = load(job.parts, say=None, **how)
        _take_little(graph.plain)
        if job.odd is not None:
            graph.plain.feats[graph.plain.owned_ids == job.odd] = torch.nan
        given: dict[str, Any] = {}
        modules = dict(model.named_modules())
        for name in job.layers:
            modules[name].register_forward_hook(lambda module, args, made, name=name: given.update({name: made}))
        decode = None if job.pairs is None else decoder_of(model)
        model.forward = model.forward if decode is None else encoder_of(model)
        model = adapt(model).eval()
        line = not_given(model, graph)
        if line is not None and job.speak and graph.plain.rank == 0:
            say(line)
        watched = LastLayer(model) if job.embeddings else None
        before = torch.get_rng_state()
        typed = isinstance(graph, TypedGraph)
        face = graph if typed or sees_rows(model, graph) else graph.plain
        with named_faults(model, face), RowByRow():
            made = model(face, graph.x_dict if typed else face.feats)
            if decode is not None and job.pairs:
                rows = _owned_rows(graph, "encode", made)
                if rows is None:
                    raise on_all_ranks(InputError(f"{type(model).__name__} gave no rows of vertices for pairs"))
                score_pairs(graph, rows, decode, job.pairs, str(Path(job.folder) / "0.npy"))
        if not torch.equal(before, torch.get_rng_state()):
            raise on_all_ranks(
                InputError(
                    f"{type(model).__name__} draws random numbers in evaluation mode, so that its answer is not one: "
                    "write F.dropout(x, p, self.training)"
                )
            )
        if decode is not None:
            return {OUTPUT: None}
        made = made if watched is None else watched.rows(graph)
        graph.plain.buffers.give_back()
        graph.plain.exchange.release("sources")
        found = {**_named(made), **{name: given.get(name) for name in job.layers}}
        for place, name in enumerate(found):
            of: Any = TaskRows(graph, name) if typed and name in graph.node_types else graph.plain
            if of.local.node_names is not None:
                file = str(Path(job.folder) / f"{place}.npy")
                write_names(graph.plain, of.owned_ids, of.local.node_names, of.num_global_nodes, file)
        return {name: _kept(graph, name, place, one, job) for place, (name, one) in enumerate(found.items())}


def _take_little(plain: Any) -> None:
    """Features stay in the part's files; rows made of arcs' features, and messages, are made in blocks."""
    plain.arcs_in_blocks, plain.transport.in_pieces = True, plain.num_ranks > 1
    plain.buffers.lean = True
    feats = plain.local.feats
    if isinstance(plain.feats, torch.Tensor) and isinstance(feats, np.ndarray):
        mapped = torch.from_numpy(feats)
        if mapped.dtype == plain.feats.dtype:
            plain.feats = plain.ndata["feat"] = mapped
    if in_blocks(plain) and "feat" in plain.edata:
        plain.edata["feat"] = leaf(plain.edata["feat"])


def _named(made: Any) -> dict[str, Any]:
    if isinstance(made, dict):
        return {str(name): one for name, one in made.items()}
    if isinstance(made, tuple | list):
        return {str(place): one for place, one in enumerate(made)}
    return {OUTPUT: made}


def _kept(graph: Any, name: str, place: int, made: Any, job: Job) -> Any:
    """None, when rows have been written; or what is no row of each vertex."""
    if isinstance(graph, TypedGraph):
        kind = made.row_space.of_type if isinstance(made, RowTensor) else None
        if kind not in graph.node_types:
            raise on_all_ranks(InputError(f"the model gave a {type(made).__name__} for {name}: expected rows of types"))
        graph = TaskRows(graph, kind)
    rows = _owned_rows(graph, name, made)
    if rows is None:
        return local_of(made).detach()
    file = str(Path(job.folder) / f"{place}.npy")
    rows = rows.float() if rows.dtype in (torch.bfloat16, torch.float16) else rows
    write_rows(graph, graph.owned_ids, rows.contiguous().numpy(), graph.vertex_space.num_global, file)
    return None


def _owned_rows(graph: Any, name: str, made: Any) -> torch.Tensor | None:
    """This rank's rows of what the model gave; None for what is no rows of vertices. Raises: InputError."""
    space = graph.vertex_space
    plain = isinstance(made, torch.Tensor) and not isinstance(made, RowTensor) and made.dim()
    if plain and len(made) == space.num_local:
        made = graph.rows_of(made)  # of a model that takes this rank's rows
    if not isinstance(made, torch.Tensor):
        raise on_all_ranks(InputError(f"the model gave a {type(made).__name__} for {name}: expected rows of vertices"))
    if not isinstance(made, RowTensor):
        return None
    if made.row_dim or made.shape[0] != space.num_global:
        raise on_all_ranks(
            InputError(f"the model gave {list(made.shape)} for {name}: the graph has {graph.num_nodes} vertices")
        )
    return in_space(made, space).inner.detach()[: graph.num_owned]
