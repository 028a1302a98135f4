"""A partition beside DistGNN's: the same graph cut by Libra into the same parts.

Shapes: P parts.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from distgnn.partition.core.book import PartitionBook, balance
from distgnn.partition.folder.manifest import Progress
from distgnn.partition.folder.manifest_file import read_manifest
from distgnn.partition.methods import cut_edges
from distgnn.partition.repartition import load_whole

MEASURES = ("replication_factor", "exchange_rows", "max_rank_rows", "edge_balance", "owned_balance", "copies_balance")


def against_libra(folder: str | Path, seed: int = 0, progress: Progress | None = None) -> dict[str, Any]:
    """Quality of a partition folder and of Libra's cut (shuffled, arcs limited) of its graph.

    Returns: {"this": …, "libra": …}, each with `replication_factor`, `exchange_rows`, `max_rank_rows`, the three
        balances, and `rows_balance`, the largest rank's exchanged rows over the mean.
    Raises: PartitionFormatError.
    Notes: reads the whole graph; memory as of `repartition` with `libra`.
    """
    manifest = read_manifest(folder)
    _, edge_list = load_whole(folder, progress)
    cut = cut_edges(edge_list, manifest["num_parts"], "libra", seed=seed, capacities=manifest.get("capacities"))
    book = PartitionBook(edge_list, cut)
    # Each row is sent by one rank and received by another, and counts at both.
    mean = 2 * manifest["exchange_rows"] / manifest["num_parts"]
    this = {name: manifest[name] for name in MEASURES}
    this["rows_balance"] = manifest["max_rank_rows"] / mean if mean else 1.0
    libra = {name: getattr(book, name) for name in MEASURES}
    libra["rows_balance"] = balance(book.pair_rows.sum(axis=0) + book.pair_rows.sum(axis=1))
    return {"this": this, "libra": libra}
