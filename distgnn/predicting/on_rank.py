"""What a rank does of `dg.predict`: the model in evaluation mode on its part, its rows into files.

Passes over graphs in memory: the rows of a small graph on one rank, and what a pass takes.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from distgnn import kernels
from distgnn.config import CutConfig
from distgnn.datasets import GraphData
from distgnn.errors import InputError, on_all_ranks
from distgnn.fitting.progress import compiling
from distgnn.fitting.source import cut_alone
from distgnn.fitting.user_model import adapt, not_given
from distgnn.graph.face.typed_graph import TypedGraph
from distgnn.graph.loader import load
from distgnn.graph.task_rows import TaskRows
from distgnn.kernels.runtime.tuning import OF_JOB
from distgnn.ops.edges.arc_blocks import leaf
from distgnn.ops.edges.on_arcs import in_blocks
from distgnn.partition import read_manifest
from distgnn.predicting.pairs import decoder_of, encoder_of, score_pairs
from distgnn.predicting.row_by_row import RowByRow
from distgnn.predicting.within_memory import watched_peak
from distgnn.rows import RowTensor, local_of
from distgnn.rows.align import in_space
from distgnn.system.calls.launch import call_on_ranks
from distgnn.system.calls.packing import unpack
from distgnn.system.output import say
from distgnn.train.predict import LastLayer, write_names, write_rows
from distgnn.train.users_model import named_faults, own_faults, sees_rows

OUTPUT = "output"  # the name of what a model gives, beside those of layers
COLUMNS = 32  # of halos that are there at a time: two lines of the cache
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
    offload: str | Path | None = None
    pairs: str | None = None


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
        with own_faults(), named_faults(model, face), RowByRow():
            made = model(face, graph.x_dict if typed else face.feats)
            if decode is not None and job.pairs:
                rows = _owned_rows(graph, "encode", made, face is graph.plain)
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
        made = made if watched is None else graph.rows_of(watched.rows(graph))
        graph.plain.buffers.give_back()
        graph.plain.exchange.release("sources")
        found = {**_named(made), **{name: given.get(name) for name in job.layers}}
        for place, name in enumerate(found):
            of: Any = TaskRows(graph, name) if typed and name in graph.node_types else graph.plain
            if of.local.node_names is not None:
                file = str(Path(job.folder) / f"{place}.npy")
                write_names(graph.plain, of.owned_ids, of.local.node_names, of.num_global_nodes, file)
        more = job, face is graph.plain
        return {name: _kept(graph, name, place, one, *more) for place, (name, one) in enumerate(found.items())}


def _take_little(plain: Any) -> None:
    """Features stay in the part's files; rows made of arcs' features, and messages, are made in blocks."""
    plain.transport.in_pieces, plain.transport.column_piece = plain.num_ranks > 1, COLUMNS
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


def _kept(graph: Any, name: str, place: int, made: Any, job: Job, is_local: bool) -> Any:
    """None, when rows have been written; or what is no row of each vertex."""
    if isinstance(graph, TypedGraph):
        kind: Any = made.row_space.of_type if isinstance(made, RowTensor) else None
        if kind not in graph.node_types:
            raise on_all_ranks(InputError(f"the model gave a {type(made).__name__} for {name}: expected rows of types"))
        graph = TaskRows(graph, kind)
    rows = _owned_rows(graph, name, made, is_local)
    if rows is None:
        return local_of(made).detach()
    file = str(Path(job.folder) / f"{place}.npy")
    rows = rows.float() if rows.dtype in (torch.bfloat16, torch.float16) else rows
    write_rows(graph, graph.owned_ids, rows.contiguous().numpy(), graph.vertex_space.num_global, file)
    return None


def _owned_rows(graph: Any, name: str, made: Any, is_local: bool) -> torch.Tensor | None:
    """This rank's rows of what the model gave; None for what is no rows of vertices. Raises: InputError.

    Args: is_local: ordinary tensors that the model gives have this rank's rows; else all, in the data's order.
    """
    space = graph.vertex_space
    plain = isinstance(made, torch.Tensor) and not isinstance(made, RowTensor) and made.dim()
    if plain and len(made) == (space.num_local if is_local else space.num_global):
        made = graph.rows_of(made if is_local else space.local_part(made, 0))
    if not isinstance(made, torch.Tensor):
        raise on_all_ranks(InputError(f"the model gave a {type(made).__name__} for {name}: expected rows of vertices"))
    if not isinstance(made, RowTensor):
        return None
    if made.row_dim or made.shape[0] != space.num_global:
        raise on_all_ranks(
            InputError(f"the model gave {list(made.shape)} for {name}: the graph has {graph.num_nodes} vertices")
        )
    return in_space(made, space).inner.detach()[: graph.num_owned]


def rows_on_one(
    job: Job, config: CutConfig, threads: int | None, graph: GraphData, odd: int | None = None
) -> dict[str, np.ndarray]:
    """The rows of a graph in memory, on this process alone. Args: odd: a vertex whose features are no numbers."""
    with cut_alone(graph, config) as folder:
        job = replace(job, parts=f"{folder}/parts", folder=folder, odd=odd)
        made = call_on_ranks(predict_part, (job,), 1, threads=threads)[0]
        for name, one in made.items():
            if one is not None:
                raise InputError(f"changed is for rows of vertices, and {name} is none: leave changed out")
        return {name: np.load(Path(folder) / f"{place}.npy") for place, name in enumerate(made)}


def measured(job: Job, tiny: GraphData, small: GraphData, offload: bool, ranks: int) -> tuple[int, dict[str, Any]]:
    """Run the model of a job on two graphs, in processes of its own. For its result see `Measure`."""
    config = CutConfig()
    with cut_alone(tiny, config, ranks) as first, cut_alone(small, config, ranks) as second:
        wait, pairs = (job.offload or second) if offload else None, None if job.pairs is None else ""
        of_both = [
            replace(job, parts=f"{folder}/parts", folder=folder, offload=wait, pairs=pairs, speak=False)
            for folder in (first, second)
        ]
        peaks = call_on_ranks(_peak_of_second, (of_both,), ranks, apart=True)
        return max(peaks), read_manifest(f"{second}/parts")


def _peak_of_second(jobs: list[Job]) -> int:
    predict_part(jobs[0])  # kernels are compiled
    with watched_peak() as peak:
        predict_part(jobs[1])
    return peak[0]
