"""What the page says of a partition: size and cost, rows per pair of ranks, balances, load and size of each part."""

from __future__ import annotations

from typing import Any

from distgnn.cli.cut_figure import LOADS, loads_of
from distgnn.extras.report.charts import bars, lines, matrix
from distgnn.extras.report.html import facts, figure, part, section, side_by_side, table
from distgnn.extras.report.read import Parts
from distgnn.system.plots import BYTES, Axis, Series
from distgnn.system.units import human_bytes, human_seconds

RANK = Axis("rank (part)", whole=True)
MOST_LINES = 64  # of the table of parts
SENTENCE = (
    "The edges of the graph are shared out among the ranks; a vertex whose edges lie on several of them has a copy on "
    "each, and those copies exchange feature rows. An epoch takes as long as its slowest rank."
)


def partition_section(parts: Parts, place: int) -> str:
    found = parts.facts
    graph = found["graph"]
    splits = " / ".join(f"{graph[split]:,}" for split in ("train", "valid", "test"))
    rows = f"{found['exchange_rows']:,} ({found['exchange_rows_per_node']:.3f} per vertex)"
    about = [
        ("graph", f"{found['name']}: {found['num_nodes']:,} vertices, {found['num_arcs']:,} arcs"),
        ("features, classes", f"{graph['num_feats']:,}, {graph['num_classes']:,}"),
        ("labelled train / valid / test", splits),
        ("cut", f"{found['num_parts']:,} parts, {found['method']}, seed {found['seed']}"),
        ("copies per vertex (replication factor)", f"{found['replication_factor']:.3f}"),
        ("rows per layer and direction, all ranks", rows),
        ("most of them on one rank", f"{found['max_rank_rows']:,} sent and received"),
        ("of them between machines", f"{found['rows_between_groups']:,}" if "rows_between_groups" in found else None),
        ("time and memory of the cut", f"{human_seconds(found['seconds'])}, {human_bytes(found['peak_rss_bytes'])}"),
    ]
    return section(
        f"parts-{place}",
        f"Partition: {parts.name}",
        SENTENCE,
        facts(about),
        part("Exchange", side_by_side(_pairs(found), _sums(found))) if found["num_parts"] > 1 else "",
        part("Balance", _balance(found)) if found["num_parts"] > 1 else "",
        part("Parts", _parts(found)),
    )


def _pairs(found: dict[str, Any]) -> str:
    return figure(
        "Rows per pair of ranks",
        matrix(found["pair_rows"]),
        "Rows that one rank sends to another in one broadcast and one reduce of a layer; times the bytes of a row (4 "
        "per column in float32) these are the bytes of that pair.",
    )


def _sums(found: dict[str, Any]) -> str:
    sent = Series("sent", [(one["part_id"], one["sent_rows"]) for one in found["parts"]])
    received = Series("received", [(one["part_id"], one["received_rows"]) for one in found["parts"]])
    return figure(
        "Rows of each rank",
        lines([sent, received], RANK, Axis("rows", from_zero=True)),
        "The sums of the lines and columns of the figure before: the rank with most of them loads the network most.",
    )


def _balance(found: dict[str, Any]) -> str:
    balances = [(LOADS.get(name, name), float(value)) for name, value in found["balances"].items()]
    largest = figure(
        "Largest part over the mean",
        bars(balances, Axis("times the mean"), "{:.3f}".format),
        "1 is a perfect balance; 1.1 means that the fullest part has a tenth more than the mean (or than its share, "
        "where ranks have different speeds).",
    )
    loads = figure(
        "Load of each part",
        lines(loads_of(found), RANK, Axis("times the mean"), limit=1.0),
        "What each part has of arcs, vertices, copies and rows, over the mean of all parts (the thin line: 1).",
    )
    return side_by_side(largest, loads)


def _parts(found: dict[str, Any]) -> str:
    if len(found["parts"]) > MOST_LINES:
        sizes = [Series("on disk", [(one["part_id"], one["bytes"]) for one in found["parts"]])]
        return figure(
            "Size of each part on disk",
            lines(sizes, RANK, Axis("bytes", BYTES, from_zero=True)),
            "All arrays that a rank reads; it maps them, so that this much of memory is used at the start.",
        )
    names = ("owned", "interior", "boundary", "source_halos", "target_halos", "arcs", "train", "sent_rows")
    rows = [
        [str(one["part_id"]), *(f"{one[name]:,}" for name in names), human_bytes(one["bytes"])]
        for one in found["parts"]
    ]
    return table(["part", *(name.replace("_", " ") for name in names), "on disk"], rows)
