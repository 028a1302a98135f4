"""What a checkpoint holds, and how all ranks write and read one together.

Weights, optimiser and schedules are the same on every rank: rank 0 writes them. Held and pending rows of a delayed
schedule and torch's random state belong to a rank. All ranks must see the run folder.

State of other people's objects (torch optimisers, schedulers, callbacks) without pickle: JSON and tensors.

| value | JSON |
|---|---|
| None, bool, int, str, finite float | itself |
| other float | {"float": "inf"} |
| tensor, array | {"tensor": name}, {"array": name}; the values go into a safetensors file under this name |
| list, tuple, set | {"list": [...]}, {"tuple": [...]}, {"set": [...]} |
| dict, Counter | {"dict": [[key, value], ...]}, {"counter": ...}: keys may be numbers |

Tables with a row for each vertex (`dg.nn.NodeEmbedding`) in files: whole, in the order of ids, for any ranks.
"""

import hashlib
import math
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load

from distgnn.comm import raise_together
from distgnn.errors import DistGNNError, InputError, RunError
from distgnn.graph.global_values import gather_rows
from distgnn.rows import RowTensor
from distgnn.system.output import say
from distgnn.train.checkpoint import files as files
from distgnn.train.checkpoint.identity import check_identity
from distgnn.train.checkpoint.weights import pack
from distgnn.train.optimizers import OwnOptimizer

_DICTS: dict[type[Any], str] = {dict: "dict", OrderedDict: "dict", defaultdict: "dict", Counter: "counter"}
_LISTS: dict[type[Any], str] = {list: "list", tuple: "tuple", set: "set"}
_MAKE_LIST: dict[str, Any] = {name: kind for kind, name in _LISTS.items()}


def flatten(value: Any, path: str, tensors: dict[str, torch.Tensor]) -> Any:
    """`value` as JSON, tensors into `tensors` under their path. Raises: InputError naming what cannot be stored."""
    kind = type(value)
    if isinstance(value, np.generic):
        return flatten(value.item(), path, tensors)
    if value is None or kind in (bool, int, str):
        return value
    if kind is float:
        return value if math.isfinite(value) else {"float": str(value)}
    if isinstance(value, torch.Tensor) and value.layout == torch.strided:
        tensors[path] = value
        return {"tensor": path}
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        tensors[path] = torch.from_numpy(np.array(value))
        return {"array": path}
    if kind in _LISTS:
        return {_LISTS[kind]: [flatten(one, f"{path}.{i}", tensors) for i, one in enumerate(value)]}
    if kind in _DICTS and all(type(key) in (int, str, float) for key in value):
        pairs = [[key, flatten(one, f"{path}.{key}", tensors)] for key, one in value.items()]
        return {_DICTS[kind]: pairs}
    raise InputError(
        f"{path} is of type {kind.__name__}: a checkpoint holds numbers, text, tensors, lists and dicts only. Leave it "
        "out of state_dict(), or train without run_dir"
    )


def unflatten(stored: Any, tensors: dict[str, torch.Tensor]) -> Any:
    """What `flatten` was given. Raises: KeyError, TypeError or ValueError where it is not its output."""
    if not isinstance(stored, dict):
        return stored
    ((kind, content),) = stored.items()
    if kind == "float":
        return float(content)
    if kind == "tensor":
        return tensors[content].clone()
    if kind == "array":
        return tensors[content].numpy().copy()
    if kind in _MAKE_LIST:
        return _MAKE_LIST[kind](unflatten(one, tensors) for one in content)
    pairs = {key: unflatten(one, tensors) for key, one in content}
    return {"dict": dict, "counter": Counter}[kind](pairs)


State = dict[str, torch.Tensor]


def in_whole(state: State) -> State:
    """The state with whole tables in place of rows of all ranks, on rank 0; elsewhere without them.

    Collective: yes, where there are tables. Notes: rank 0 holds a whole table.
    """
    made = {name: one for name, one in state.items() if not isinstance(one, RowTensor)}
    for name, rows in ((name, one) for name, one in state.items() if isinstance(one, RowTensor)):
        space = rows.row_space
        of: Any = SimpleNamespace(comm=space.comm, num_owned=space.num_local, owned_ids=space.places)
        of.num_global_nodes = space.num_global
        found = gather_rows(of, rows.inner)
        if found is not None:
            made[name] = torch.from_numpy(found)
    return {name: made[name] for name in state if name in made}


def rows_of_state(state: State, parameters: list[Any]) -> State:
    """An optimiser's state in which what stands beside a table's rows is rows of all ranks, too."""
    return {name: _like(parameters, name, one) for name, one in state.items()}


def load_state(optimizer: OwnOptimizer, state: State, parameters: list[Any]) -> None:
    """Take over an optimiser's state with whole tables."""
    mine = rows_of_state(optimizer.state(), parameters)
    spaces = {name: one.row_space for name, one in mine.items() if isinstance(one, RowTensor)}
    optimizer.load_state(
        {name: spaces[name].local_part(one, 0) if name in spaces else one for name, one in state.items()}
    )


def _like(parameters: list[Any], name: str, one: torch.Tensor) -> Any:
    number = name.rpartition(".")[2]
    of = parameters[int(number)] if number.isdigit() and int(number) < len(parameters) else None
    return of.like(one) if isinstance(of, RowTensor) and one.shape == of.inner.shape else one


DELAYED = "rank-{rank}"
HELD = "pass."  # before the names of rows that steps of a pass hold


def save_checkpoint(run: Path, trainer: Any, epochs_done: int) -> None:
    """Write the state after `epochs_done` epochs as a new checkpoint of the run folder `run`. Collective: yes."""
    comm, graph = trainer.graph.comm, trainer.graph
    if not graph.algorithm.exact:  # late rows are copied on their way to the file: free rows and exact messages go
        graph.buffers.give_back()
        exact, _ = graph.exchanges.exact
        exact.drain()
        exact.release("packed", "sources", "partials", "targets")
    of_pass = {HELD + name: rows for name, rows in trainer.passes.held().items()}
    delayed: dict[str, np.ndarray] = graph.exchanges.state_dict() | of_pass  # of this rank; empty where none are late
    identity, cut = trainer.fingerprint, _cut_digests(graph)
    random = comm.gather(torch.get_rng_state().numpy(), root=0)  # 5 kB of each rank: only rank 0 writes them
    partial = None
    with raise_together(comm), _writing(run):
        if comm.rank == 0:
            partial = files.begin(run, epochs_done)
    partial = comm.bcast(partial, root=0)
    try:
        entries = {}
        with raise_together(comm), _writing(run):
            if delayed:
                name = DELAYED.format(rank=comm.rank)
                entries[name] = files.write_arrays(partial, name, delayed)
                delayed.clear()
        for name, one in _states(trainer).items():
            whole = in_whole(one)
            with raise_together(comm), _writing(run):
                if comm.rank == 0:
                    entries[name] = files.write_file(partial, name, pack(whole))
            del whole
        gathered = comm.gather(entries, root=0)
        with raise_together(comm), _writing(run):
            if comm.rank == 0:
                everything = {name: entry for one in gathered for name, entry in one.items()}
                contents = {"random": pack({"torch": torch.from_numpy(np.stack(random))})}
                objects: dict[str, Any] = trainer.objects()
                if objects:
                    tensors: dict[str, torch.Tensor] = {}
                    objects = {"objects": flatten(objects, "state", tensors)}
                    contents["objects"] = pack(tensors)
                for name, content in contents.items():
                    everything[name] = files.write_file(partial, name, content)
                state = {"ranks": comm.size, "cut": cut, "settings": trainer.settings, "graph": identity}
                state |= {"files": everything, "stopping": trainer.stopping.state(), "best": trainer.best_record}
                state |= {"last": trainer.last_record} | objects
                trainer.outputs.folder.sync_metrics()
                files.commit(run, partial, epochs_done, state)
    except DistGNNError:
        if comm.rank == 0:
            files.clean(run)
        raise


def _states(trainer: Any) -> dict[str, dict[str, torch.Tensor]]:
    """By file what is alike on all ranks, but for tables: weights, the program's own optimiser, the best weights."""
    found = {"model": trainer.model.state_dict()}
    if isinstance(trainer.optimizer, OwnOptimizer):
        found[trainer.optimizer.name] = rows_of_state(trainer.optimizer.state(), trainer.gradients.parameters)
    return found | ({"best": trainer.best_state} if trainer.best_state else {})


def load_checkpoint(run: Path, trainer: Any) -> int:
    """Put the newest checkpoint that all ranks find whole into `trainer`; returns its epochs, 0 where there is none.

    Collective: yes.
    """
    comm = trainer.graph.comm
    if comm.rank == 0:
        files.clean(run)
    candidates = comm.bcast(files.find_checkpoints(run) if comm.rank == 0 else None, root=0)
    damage = None
    for path in candidates:
        try:
            state, tensors = _read_together(path, trainer)
        except RunError as error:
            damage = damage or error
            continue
        _restore(trainer, state, tensors)
        if damage is not None and comm.rank == 0:  # also of a quiet run: epochs are lost
            line = f"{damage}; going on from the older checkpoint, after {state['epochs_done']} epochs"
            say(line, "")
        return state["epochs_done"]
    if damage is not None:
        raise damage
    return 0


def _read_together(path: Path, trainer: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """State and tensors, the same on every rank but for those that belong to a rank."""
    comm = trainer.graph.comm
    state, common = None, {}
    with raise_together(comm):
        if comm.rank == 0:
            state = files.read_state(path)
            common = {name: files.read_file(path, state, name) for name in files.COMMON_FILES}
    state = comm.bcast(state, root=0)
    now, cut = trainer.fingerprint, _cut_digests(trainer.graph)
    with raise_together(comm):
        check_identity(path, state, trainer.settings, now)
    common = {name: comm.bcast(common.get(name), root=0) for name in files.COMMON_FILES}
    with raise_together(comm):
        tensors = {name: unpack(path, name, content) for name, content in common.items() if content is not None}
        check_tensors(path, tensors, trainer)
        if state.get("cut") == cut:
            name = DELAYED.format(rank=comm.rank)
            content = files.read_file(path, state, name)
            tensors["delayed"] = unpack(path, name, content) if content is not None else {}
    return state, tensors


def unpack(path: Path, name: str, content: bytes) -> dict[str, torch.Tensor]:
    try:
        return load(content)
    except (SafetensorError, ValueError, KeyError, RuntimeError, TypeError) as error:
        reason = " ".join(str(error).split())[:120]
        raise RunError(f"{path / name}.safetensors is damaged: {reason}") from error


def check_tensors(path: Path, tensors: dict[str, dict[str, Any]], trainer: Any) -> None:
    """Raise RunError unless names, shapes and dtypes fit the trainer's model and optimiser."""
    expected = {"model": trainer.model.state_dict()}
    if isinstance(trainer.optimizer, OwnOptimizer):
        like = trainer.optimizer.state_like(tensors.get(trainer.optimizer.name, {}))
        expected[trainer.optimizer.name] = rows_of_state(like, trainer.gradients.parameters)
    if "best" in tensors:
        expected["best"] = expected["model"]
    for name, wanted in expected.items():
        kinds = [
            {key: f"{str(tensor.dtype).removeprefix('torch.')} {list(tensor.shape)}" for key, tensor in one.items()}
            for one in (tensors.get(name, {}), wanted)
        ]
        for key in sorted(kinds[0].keys() | kinds[1].keys()):
            there, here = (kind.get(key, "missing") for kind in kinds)
            if there != here:
                raise RunError(f"{path / name}.safetensors does not fit the model: {key} is {there}, not {here}")


def _restore(trainer: Any, state: dict[str, Any], tensors: dict[str, Any]) -> None:
    comm, graph = trainer.graph.comm, trainer.graph
    with raise_together(comm):
        trainer.model.load_state_dict(tensors["model"])
        if isinstance(trainer.optimizer, OwnOptimizer):
            load_state(trainer.optimizer, tensors[trainer.optimizer.name], trainer.gradients.parameters)
        if trainer.objects():  # the settings said that they are of the same kinds
            try:
                trainer.load_objects(unflatten(state.get("objects"), tensors.get("objects", {})))
            except (KeyError, TypeError, ValueError, AttributeError, RecursionError, RuntimeError) as error:
                reason = " ".join(str(error).split())[:120]
                raise RunError(f"the checkpoint's optimiser or callback state does not fit: {reason}") from error
        trainer.best_state = dict(tensors.get("best", {}))
        trainer.best_record, trainer.last_record = state.get("best"), state.get("last")
        trainer.stopping.load_state(state["stopping"])
        random = tensors.get("random", {}).get("torch")
        if state["ranks"] == comm.size and random is not None and len(random) == comm.size:
            torch.set_rng_state(random[comm.rank].clone())
    epochs_done = state["epochs_done"]
    if "delayed" in tensors:
        with raise_together(comm):
            try:
                held = {name: tensor.numpy() for name, tensor in tensors["delayed"].items()}
                of_pass = {name: held.pop(name) for name in tuple(held) if name.startswith(HELD)}
                graph.exchanges.load_state_dict(held)
                of_pass = {name.removeprefix(HELD): rows for name, rows in of_pass.items()}
                trainer.passes.load_held(of_pass, epochs_done)
            except (ValueError, IndexError, KeyError) as error:
                raise RunError(f"the checkpoint's held rows do not fit: {error}") from error
        return
    graph.exchanges.refill(epochs_done)
    again = "" if graph.algorithm.exact else "; its delayed rows are dropped, synchronous epochs fill them again"
    trainer.say(f"resuming a run of {state['ranks']} ranks on another cut, {comm.size} ranks{again}")


def _cut_digests(graph: Any) -> list[str]:
    """One digest per rank of who has which rows: held rows fit the same cut only. Collective: yes."""
    mine = hashlib.sha256(np.ascontiguousarray(graph.local.global_ids).tobytes())
    mine.update(np.ascontiguousarray(graph.local.halo_counts).tobytes())
    return graph.comm.allgather(mine.hexdigest()[:16])


@contextmanager
def _writing(run: Path) -> Iterator[None]:
    """A full or read-only disk is one line."""
    try:
        yield
    except OSError as error:
        newest = next(iter(files.find_checkpoints(run)), None)
        kept = f"{newest.name} is kept" if newest else "no checkpoint was written before"
        raise RunError(f"cannot write a checkpoint to {run}: {error.strerror or error}; {kept}") from error
