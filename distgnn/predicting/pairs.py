"""`dg.predict(…, pairs=…)`: a score of each pair of vertices, from the rows that an encoder makes once.

Each rank has a range of the pairs, and asks the owners of their ends for rows, a piece at a time: `z` is the rows of a
piece. A row that is no number stands before and behind them: a decoder that looks at others than a pair's is refused.

Legend: M pairs, m in a piece, U vertices at their ends, D width of a row, C of a score.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from distgnn.comm import raise_together
from distgnn.comm.sums import receive_array, send_array
from distgnn.datasets.files.kinds import read_pairs
from distgnn.datasets.files.node_table import alike
from distgnn.datasets.names.renumber import places_of
from distgnn.errors import InputError
from distgnn.ops import RowLookup
from distgnn.partition import load_part
from distgnn.partition.folder.manifest import names_of
from distgnn.train.predict import file_of_rows

PIECE_BYTES = 1 << 24  # of the rows of one end of a piece's pairs
LARGEST, CHECKED = 1 << 18, 64  # pairs
NEAR = 1e-4  # of the largest score: scores of fewer pairs may have another order of sums

Decode = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]  # (rows [U, D], places [2, m]) -> [m] or [m, C]


def encoder_of(model: nn.Module) -> Any:
    """What makes rows of vertices: `encode` where there is one, else forward."""
    return getattr(model, "encode", model.forward)


def decoder_of(model: nn.Module) -> Decode:
    """What makes scores of pairs. Raises: InputError where the model has nothing for them."""
    decode: Any = getattr(model, "decode", None)
    if callable(decode):
        return decode
    of_two: Any = getattr(model, "decoder", None)
    if callable(getattr(model, "scores", None)) and isinstance(of_two, nn.Module):
        return lambda rows, places: of_two(rows[places[0]], rows[places[1]])  # dg.nn.PairPredictor
    raise InputError(
        f"pairs need a model with decode(z, edge_label_index), and {type(model).__name__} has none: write one, as "
        "(z[edge_label_index[0]] * z[edge_label_index[1]]).sum(-1)"
    )


def names_in(folder: str, manifest: dict[str, Any]) -> np.ndarray | None:
    """What the vertices of a partition folder are called, [N]."""
    if "name_bytes" not in manifest["graph"]:
        return None
    parts = [load_part(folder, part_id, check=False) for part_id in range(manifest["num_parts"])]
    ids = np.concatenate([one.global_ids[: one.num_owned] for one in parts])
    names = np.concatenate([names_of(np.asarray(one.node_names)) for one in parts])
    found = np.empty_like(names)
    found[ids] = names
    return found


def pair_file(pairs: Any, names: np.ndarray | None, num_nodes: int, folder: str) -> str:
    """The .npy file of pairs of ids, int [M, 2]: the one given, or one in `folder`.

    Args: pairs: a file, an array [M, 2], or a tensor [2, M]; texts, and numbers of a table, are names where vertices
        have some.
    """
    file = Path(pairs) if isinstance(pairs, str | Path) else None
    by_name = file is not None and file.suffix != ".npy" and names is not None
    found = _array(pairs) if file is None else read_pairs(file)
    where = "pairs" if file is None else f"pairs: {file}"
    if found.ndim != 2 or found.shape[1] != 2:
        raise InputError(f"{where} has the shape {list(found.shape)}: expected [M, 2], or a torch tensor [2, M]")
    if not len(found):
        raise InputError(f"{where} has no pairs: nothing to score")
    if by_name or found.dtype.kind in "UO":
        if names is None:
            raise InputError(f"{where} holds names, and vertices have none: give ids from 0 to {num_nodes - 1}")
        places, missing = places_of(*alike(found, names))
        if missing.any():
            row = int(np.argmax(missing.any(1)))
            name = found[row][missing[row]][0]
            raise InputError(f"{where}: row {row} holds {str(name)!r}, which is no vertex of the graph")
        found = places
    elif found.dtype.kind not in "iu":
        raise InputError(f"{where} holds {found.dtype}: expected ids or names of vertices")
    for first in range(0, len(found), LARGEST):
        some = found[first : first + LARGEST]
        wrong = (some < 0) | (some >= num_nodes)
        if wrong.any():
            row = int(np.argmax(wrong.any(1)))
            bad = some[row][wrong[row]][0]
            raise InputError(f"{where}: row {first + row} holds {bad}, and vertices are 0 to {num_nodes - 1}")
    if isinstance(found, np.memmap) and file is not None:
        return str(file.resolve())
    kept = Path(folder) / "pairs.npy"
    try:
        np.save(kept, np.ascontiguousarray(found))
    except OSError as error:
        raise InputError(f"{where}: cannot be kept in {folder}: {error.strerror or error}") from error
    return str(kept)


def _array(pairs: Any) -> np.ndarray:
    if not isinstance(pairs, torch.Tensor):
        return np.asarray(pairs)
    found = pairs.detach().cpu().numpy()
    return found.T if found.ndim == 2 and len(found) == 2 else np.empty(found.shape[::-1])  # refused by its shape


def score_pairs(graph: Any, rows: torch.Tensor, decode: Decode, file: str, out: str) -> None:
    """Write the scores [M, …] of all pairs to a .npy file. Collective: yes.

    Args: rows: of owned vertices, [O, D]; file: of pairs; out: rank 0 writes it in pieces.
    """
    pairs, comm = np.load(file, mmap_mode="r"), graph.comm
    share = -(-len(pairs) // comm.size)
    step = max(1, min(LARGEST, share, PIECE_BYTES // max(1, rows[:1].nbytes or rows.shape[-1] * 8)))
    step = min(comm.allgather(step))
    kept: Any = None
    for first in range(0, share, step):
        ranges = [_range(len(pairs), share, rank, first, step) for rank in range(comm.size)]
        mine = ranges[comm.rank]
        lookup = RowLookup(graph, np.asarray(pairs[mine]))
        table, places = lookup.few(rows)
        with raise_together(comm):
            scores = _scores(decode, table, places.t(), first == 0) if len(places) else None
            if comm.rank == 0 and kept is None and scores is not None:
                kept = file_of_rows(Path(out), scores.dtype, (len(pairs), *scores.shape[1:]))
        if comm.rank:
            if scores is not None:
                send_array(comm, scores, 0)
            continue
        kept[mine] = scores
        for rank, there in enumerate(ranges):
            if rank and there.start < there.stop:
                theirs = np.empty((there.stop - there.start, *kept.shape[1:]), kept.dtype)
                receive_array(comm, theirs, rank)
                kept[there] = theirs
    if kept is not None:
        kept.flush()


def _range(count: int, share: int, rank: int, first: int, step: int) -> slice:
    end = min((rank + 1) * share, count)
    return slice(min(rank * share + first, end), min(rank * share + first + step, end))


def _scores(decode: Decode, table: torch.Tensor, places: torch.Tensor, check: bool) -> np.ndarray:
    """Scores of a piece. Args: table [U, D]; places [2, m]; check: has each pair the same score by itself?"""
    lost = table.new_full((1, *table.shape[1:]), torch.nan)
    found = decode(torch.cat([lost, table, lost]), places + 1)
    if not isinstance(found, torch.Tensor) or found.dim() < 1 or len(found) != places.shape[1]:
        shown = list(found.shape) if isinstance(found, torch.Tensor) else f"a {type(found).__name__}"
        raise InputError(f"decode gave {shown} for {places.shape[1]} pairs: expected a number or a row of each pair")
    if not _same(found, decode(table, places), 0) if found.isnan().any() else False:
        raise InputError("decode looks at rows of other vertices than a pair's: pairs are scored in pieces, each alone")
    if check:
        some = places[:, : min(CHECKED, -(-places.shape[1] // 2))]
        if not _same(found[: some.shape[1]], decode(table, some), NEAR):
            raise InputError("decode gives a pair another score beside other pairs: pairs are scored in pieces")
    found = found.detach()
    return (found.float() if found.dtype in (torch.bfloat16, torch.float16) else found).contiguous().numpy()


def _same(first: torch.Tensor, second: torch.Tensor, near: float) -> bool:
    if first.shape != second.shape:
        return False
    first, second = first.double(), second.double()
    limit = near * max(1e-30, float(first.nan_to_num(0, 0, 0).abs().max()))
    return torch.allclose(first, second, rtol=0, atol=limit, equal_nan=True)
