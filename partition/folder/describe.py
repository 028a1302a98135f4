"""What `distgnn info` shows of a partition folder: plain data, printed elsewhere.

Shapes: O owned rows of a part, P parts, B bins of degrees.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from distgnn.partition.core.book import balance
from distgnn.partition.core.vertex_cut import part_shares
from distgnn.partition.folder.manifest_file import PART_SIZES, read_manifest

SUMMARY = (
    "name", "num_parts", "num_nodes", "num_edges", "num_arcs", "direction", "self_loops", "method", "order", "seed",
    "replication_factor", "edge_balance", "owned_balance", "copies_balance", "exchange_rows", "max_rank_rows",
    "seconds", "peak_rss_bytes",
)  # fmt: skip
ROLES = ("source_only", "both_roles", "target_only")


def describe(folder: str | Path) -> dict[str, Any]:
    """A partition in numbers, from its manifest alone.

    Returns: a dict that JSON can hold:
        every field of `SUMMARY`; `graph` (features, classes, splits);
        `exchange_rows_per_node`: exchange rows over vertices;
        `groups`, `rows_between_groups`: if it was cut between groups of ranks first;
        `parts`: one dict for each part with `part_id`, the fields of `PART_SIZES`, `boundary`, `sent_rows`,
            `received_rows`, `symmetric`, `bytes`, and its halos by role: `source_only`, `both_roles`, `target_only`;
        `roles`: these three, summed over parts;
        `balances`: largest over share of arcs, owned, rows, and over the mean of train and exchanged rows;
        of a typed graph `types`, `relations`: name -> owned vertices, those for training, or arcs, of each part;
        `pair_rows`: [P][P], rows that part p sends to part q in one broadcast and one reduce.
    Raises: PartitionFormatError.
    """
    manifest = read_manifest(folder)
    pair_rows = np.array(manifest["pair_rows"], dtype=np.int64)
    parts = [_describe_part(i, part, pair_rows) for i, part in enumerate(manifest["parts"])]
    shares = part_shares(len(parts), manifest.get("capacities"))
    exchanged = np.array([part["sent_rows"] + part["received_rows"] for part in parts])
    balances = {name: balance(np.array([part[name] for part in parts]), shares) for name in ("arcs", "owned", "rows")}
    train = np.array([part["train"] for part in parts])
    summary = {name: manifest[name] for name in SUMMARY}
    summary["exchange_rows_per_node"] = manifest["exchange_rows"] / max(manifest["num_nodes"], 1)
    groups = manifest.get("groups", 1)
    if groups > 1:
        summary |= {"groups": groups, "rows_between_groups": rows_between_groups(pair_rows, groups)}
    summary |= {kind: _by_name(manifest, kind) for kind in ("types", "relations") if manifest["graph"].get("types")}
    return summary | {
        "roles": {role: sum(part[role] for part in parts) for role in ROLES},
        "graph": manifest["graph"],
        "parts": parts,
        "balances": balances | {"train": balance(train), "exchanged": balance(exchanged)},
        "pair_rows": pair_rows.tolist(),
    }


def _by_name(manifest: dict[str, Any], kind: str) -> dict[str, dict[str, list[int]]]:
    """Name of a type or relation -> "owned" and "train", or "arcs", of each part."""
    counts = {"owned": "type_rows", "train": "type_train"} if kind == "types" else {"arcs": "relation_arcs"}
    names = [name if kind == "types" else " ".join(name) for name in manifest["graph"][kind]]
    columns = {what: np.array([part[key] for part in manifest["parts"]]).T.tolist() for what, key in counts.items()}
    return {name: {what: rows[i] for what, rows in columns.items()} for i, name in enumerate(names)}


def _describe_part(part_id: int, part: dict, pair_rows: np.ndarray) -> dict:
    row = {"part_id": part_id} | {name: part[name] for name in PART_SIZES}
    row["boundary"] = part["owned"] - part["interior"]
    # pair_rows[p, q] is what p sends to q: its line is sent, its column received.
    row["sent_rows"] = int(pair_rows[part_id].sum())
    row["received_rows"] = int(pair_rows[:, part_id].sum())
    halos = part["rows"] - part["owned"]
    # A halo with both roles is counted among sources and among targets: what is beyond the number of halos.
    both = part["source_halos"] + part["target_halos"] - halos
    row |= zip(ROLES, (part["source_halos"] - both, both, part["target_halos"] - both), strict=True)
    row["symmetric"] = part["symmetric"]
    row["bytes"] = sum(entry["bytes"] for entry in part["files"].values())
    return row


def rows_between_groups(pair_rows: np.ndarray, groups: int) -> int:
    """Of the exchange rows [P, P], those between ranks of different groups."""
    # Plain: rank // (ranks of a group).
    group_of = np.arange(len(pair_rows)) * groups // len(pair_rows)
    return int(pair_rows[group_of[:, None] != group_of[None, :]].sum())
