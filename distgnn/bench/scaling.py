"""Scaling: what `distgnn bench` over several partition folders says about more sockets, strong or weak.

Legend, for one algorithm on a folder, and on the first folder (1): A arcs of the graph, t seconds per epoch, c cores.

    speed-up     (A / t) / (A1 / t1)      arcs per second; for cuts of one graph (strong scaling) that is t1 / t
    efficiency   speed-up / (c / c1)      for graphs that grow with the ranks (weak scaling) that is t1 / t

Cores are those that ranks really have: four ranks of one thread on two cores have half a core each, so that a machine
which is shared by more ranks than it has cores shows what more parts cost and not what it lacks. Needs no MPI.
"""

from typing import Any


def describe_cut(row: dict[str, Any], manifest: dict[str, Any]) -> dict[str, Any]:
    """A row with the size of its graph and the cost of its cut, from partition.json."""
    return row | {key: manifest[key] for key in ("num_nodes", "num_arcs", "replication_factor", "exchange_rows")}


def with_scaling(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows with `speedup_vs_first` and `efficiency`, against the row of the same algorithm on the first folder."""
    first: dict[str, dict] = {}
    for row in rows:
        base = first.setdefault(row["name"], row)
        rate, base_rate = (one["num_arcs"] / one["epoch_seconds_median"] for one in (row, base))
        row["speedup_vs_first"] = rate / base_rate
        row["efficiency"] = row["speedup_vs_first"] * base["cores"] / row["cores"]
    return rows
