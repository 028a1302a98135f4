"""Is a checkpoint of this model, graph and settings? Compared name by name, so that the difference can be said.

A graph's fingerprint: the same for every cut of the same graph, another for another graph.

Each arc and each owned vertex is hashed with its global id and the hashes are added modulo 2^64 over all ranks: the
sum does not depend on who holds what.

Legend: O owned rows, A local arcs, D feature width.

Source: sums of row hashes as in multiset hashing (Clarke et al., ASIACRYPT'03); ours detects
mistakes, not attacks.
"""

import functools
import hashlib
import inspect
import math
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from types import CellType, CodeType
from typing import Any

import numpy as np
import torch

from distgnn.comm import sum_over_ranks
from distgnn.config import Schedule, TrainConfig
from distgnn.config.extras import all_names
from distgnn.config.train import OVER_ALL_EPOCHS
from distgnn.errors import InputError
from distgnn.graph.part_arrays import leave_on_disk
from distgnn.ops import SparseRows
from distgnn.partition import LocalGraph
from distgnn.partition.core.part_arrays import OF_ARCS, PART_ARRAYS

BLOCK_ROWS = 1 << 16
COLUMNS = {array.name: array.hashed for array in PART_ARRAYS if array.hashed}
PARTS = ("arcs", "edge weights", "features", "splits", "edge splits", "typed columns", *COLUMNS.values())
MIX = tuple(np.uint64(factor) for factor in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))


def fingerprint(graph: Any) -> dict[str, object]:
    """Sizes, and one hash for each of `PARTS`, of the graph whose parts the ranks hold.

    Collective: yes. One pass over this rank's arcs and features, in blocks: a step's free rows may be there beside it.
    The same for dense and for sparse features.
    """
    local, comm = graph.local, graph.comm
    masks = [mask for mask in (local.train_mask, local.valid_mask, local.test_mask) if mask is not None]
    splits = _column(local.global_ids, np.stack(masks, axis=1) if len(masks) == 3 else None)
    weights = _column(local.arc_ids, local.edge_weight)
    mine = [_arcs(local), weights, _feats(graph), splits, _edge_splits(local), _typed(local)]
    for name in COLUMNS:
        ids = local.arc_ids if name in OF_ARCS else local.global_ids
        mine.append(_column(ids, getattr(local, name)))
    counts = np.array([local.num_owned, local.num_arcs], dtype=np.uint64)
    every = sum_over_ranks(comm, np.concatenate([np.array(mine, dtype=np.uint64), counts]))
    hashes: dict[str, object] = {name: f"{int(value):016x}" for name, value in zip(PARTS, every, strict=False)}
    return {"vertices": int(every[-2]), "arc count": int(every[-1]), **hashes}


def difference(saved: dict[str, Any], now: dict[str, Any]) -> str | None:
    """What is first different between two fingerprints, as a sentence; None where they are the same."""
    for name in ("vertices", "arc count"):
        if saved.get(name) != now[name]:
            return f"{saved.get(name)} {name.split()[0]}{'s' if name != 'vertices' else ''} there, {now[name]} here"
    return next((f"its {name} are different" for name in PARTS if saved.get(name) != now[name]), None)


def _mix(values: np.ndarray) -> np.ndarray:
    """A bijection of 64 bits that changes about half of them (splitmix64)."""
    values = (values ^ (values >> np.uint64(30))) * MIX[1]
    values = (values ^ (values >> np.uint64(27))) * MIX[2]
    return values ^ (values >> np.uint64(31))


def _unsigned(values: np.ndarray) -> np.ndarray:
    return np.asarray(values).astype(np.int64).view(np.uint64)


def _arcs(local: LocalGraph) -> int:
    rows = (np.arange(local.num_owned), local.target_halo_rows)
    columns = (np.arange(local.num_owned), local.source_halo_rows)
    ids, first, total = _unsigned(local.global_ids), 0, 0
    for number, (indptr, indices) in enumerate(local.blocks.values()):
        targets, sources = ids[rows[number // 2]], ids[columns[number % 2]]
        for begin in range(0, len(indices), BLOCK_ROWS):
            place = np.arange(begin, min(begin + BLOCK_ROWS, len(indices)))
            target = targets[np.searchsorted(indptr, place, side="right") - 1]
            arc = _unsigned(local.arc_ids[first + place])
            total += _total(_mix(arc * MIX[0] + _mix(sources[indices[place]] * MIX[1] + _mix(target + MIX[2]))))
            leave_on_disk(local.arc_ids)  # a step of most models does not read them
        first += len(indices)
    return total % 2**64


def _feats(graph: Any) -> int:
    feats, ids = graph.feats, graph.owned_ids
    if feats is None:
        return 0
    if graph.feat_norm is not None:  # the raw ones: means over ranks are equal up to rounding only
        raw = graph.local.feats
        return _sparse(ids, raw, raw.data) if hasattr(raw, "toarray") else _column(ids, raw)
    if isinstance(feats, SparseRows):
        return _sparse(ids, feats, feats.values)
    return _column(ids, feats.detach()[: len(ids)])


def _sparse(ids: np.ndarray, rows: Any, values: np.ndarray) -> int:
    """Of rows as CSR; zeros add nothing to a row's sum."""
    entries = _bits(values) * _factors(rows.shape[1])[rows.indices]
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(entries, dtype=np.uint64)])
    return _total(_mix(sums[rows.indptr[1:]] - sums[rows.indptr[:-1]] + _unsigned(ids) * MIX[0]))


def _edge_splits(local: LocalGraph) -> int:
    """Pairs, labels and negatives by their rows in the split; the name of an array is part of the hash."""
    total = 0
    for name in sorted(local.graph.get("edge_splits", {})):
        total += _column(local.edge_split_ids(name), local.edge_splits[name]) * _of_name(name)
    return total % 2**64


def _typed(local: LocalGraph) -> int:
    """Numbers of types by global vertex id, of relations by global arc id; file and column are part of the hash."""
    ids, total = local.global_ids[: local.num_owned], 0
    tables = [
        (f"{n} {name}", ids[local.node_types == n], rows)
        for n, kind in enumerate(local.types)
        for name, rows in local.typed[kind].items()
    ]
    tables += [
        (f"{n} {name}", local.arc_ids[local.edge_types == n], rows)
        for n, columns in local.relation_columns.items()
        for name, rows in columns.items()
    ]
    for name, own, rows in tables:
        if hasattr(rows, "indptr"):
            total += _sparse(own, rows, rows.data) * _of_name(name)
        elif rows.dtype.kind != "U":  # names of vertices train nothing
            total += _column(own, rows) * _of_name(name)
    return total % 2**64


def _of_name(name: str) -> int:
    return int(np.frombuffer(name.encode().ljust(32, b"\0"), np.uint64).sum(dtype=np.uint64)) | 1


def _column(ids: np.ndarray, table: np.ndarray | torch.Tensor | None) -> int:
    """The sum over rows of the hash of (global id, all columns); ids [at least rows]."""
    if table is None:
        return 0
    table = table if isinstance(table, torch.Tensor) else np.asarray(table)
    table = table.reshape(len(table), math.prod(table.shape[1:]))  # -1 is ambiguous where there are no rows
    factors = _factors(table.shape[1])
    step, total = max(1, BLOCK_ROWS * 16 // max(table.shape[1], 16)), 0
    for begin in range(0, len(table), step):
        block = table[begin : begin + step]
        columns = _bits(block.float().numpy() if isinstance(block, torch.Tensor) else block)
        row_ids = _unsigned(ids[begin : begin + len(columns)])
        total += _total(_mix((columns * factors).sum(axis=1, dtype=np.uint64) + row_ids * MIX[0]))
        leave_on_disk(ids)
    return total % 2**64


def _factors(width: int) -> np.ndarray:
    """One odd number per column."""
    return _mix(np.arange(1, width + 1, dtype=np.uint64) * MIX[0]) | np.uint64(1)


def _bits(block: np.ndarray) -> np.ndarray:
    """Numbers as uint64: floats by their bits in float32, whole numbers as they are."""
    if block.dtype.kind == "f":
        return np.ascontiguousarray(block, dtype=np.float32).view(np.uint32).astype(np.uint64)
    return _unsigned(block)


def _total(hashes: np.ndarray) -> int:
    return int(hashes.sum(dtype=np.uint64))


# What may change between the parts of one run: none of it changes a number of an epoch.
FREE_TRAIN = (
    "epochs", "run_dir", "overwrite", "resume", "checkpoint_every", "timeout", "verify_every", "eval_every", "trace",
    "log", "offload", "memory_report",
)  # fmt: skip

FREE_MODEL = {"model.remat"}  # nor does this, and `--memory auto` may choose otherwise on another machine

# Of [run]: said by the graph itself, or how ranks share the work, which changes as the number of ranks may.
OF_RANKS = {"feat_norm", *all_names(Schedule)}


def run_settings(config: TrainConfig, metric: str, describe: dict[str, Any], graph: Any) -> dict[str, object]:
    """Settings that a resumed run must have, flat: {"train.lr": 0.01, "model.hidden_feats": 256, …}; of training those
    that are not as they were declared."""
    usual = {one.name: one.default for one in fields(config)}
    train = {name: value for name, value in config.as_dict().items() if name not in FREE_TRAIN and value != usual[name]}
    if config.lr_schedule in OVER_ALL_EPOCHS:
        train["epochs"] = config.epochs
    sections = {"train": train | {"metric": metric}}
    sections |= {name: values for name, values in describe.items() if name in ("model", "run")}
    sections["run"] = {name: value for name, value in sections.get("run", {}).items() if name not in OF_RANKS}
    made = {"algorithm": graph.algorithm.name, "dtype": str(graph.dtype).removeprefix("torch.")}
    made |= {"feat_norm": graph.feat_norm.name} if graph.feat_norm else {}
    sections["graph"] = made | {"update": graph.update}
    return {f"{section}.{name}": value for section, values in sections.items() for name, value in values.items()}


def name_of(function: Callable[..., Any] | None) -> str | None:
    """What tells a function from others in a checkpoint: its name; of one without a name, a digest of its bytecode.
    Notes: a function with a name may be changed and keeps it. Another Python may give a lambda another digest."""
    if function is None:
        return None
    if isinstance(function, functools.partial):
        given = [*map(_shown, function.args)]
        given += [f"{name}={_shown(value)}" for name, value in sorted(function.keywords.items())]
        return f"partial({', '.join([str(name_of(function.func)), *given])})"
    name: str = getattr(function, "__qualname__", type(function).__qualname__)
    if not inspect.isfunction(function) or not name.endswith("<lambda>"):
        return name
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    later = CellType()  # of a name that gets its value later
    values = [f" {one}={_shown(cell.cell_contents)}" for one, cell in cells if cell != later]
    values += [f" {place}={_shown(value)}" for place, value in enumerate(function.__defaults__ or ())]
    return f"{name} {_digest(function.__code__)}{''.join(values)}"


def _shown(value: Any) -> str:
    """A number or text; of anything else, whose text may be another in every process, the type."""
    return repr(value) if isinstance(value, int | float | str) else type(value).__qualname__


def _digest(code: CodeType) -> str:
    constants = [_digest(one) if isinstance(one, CodeType) else repr(one) for one in code.co_consts]
    return hashlib.sha256(repr((code.co_code, code.co_names, constants)).encode()).hexdigest()[:8]


def check_identity(path: Path, state: dict[str, Any], settings: dict[str, Any], graph: dict[str, Any]) -> None:
    """Raise InputError naming the first difference between a checkpoint and what is to be trained now."""
    different = difference(state["graph"], graph)
    if different:
        raise InputError(f"{path} is of another graph: {different}")
    saved = state["settings"]
    for name in sorted((saved.keys() | settings.keys()) - FREE_MODEL):
        there, here = saved.get(name), settings.get(name)
        if there != here:
            words = ["not set" if value is None else value for value in (there, here)]
            raise InputError(
                f"{path} is of other settings: {name.rpartition('.')[2]} is {words[0]} there, {words[1]} here"
            )
