"""The rows of a study: one for each number of ranks, network and algorithm, with what was measured and predicted."""

import statistics
from dataclasses import dataclass, field
from typing import Any

from distgnn.bench.contenders import EXACT

HERE = "here"
PHASES = ("aggregate", "dense", "pack", "wait")
Row = dict[str, Any]


@dataclass
class Measured:
    """What is known of one number of ranks: turns here, and by network; `predicted` and `trained` by algorithm."""

    ranks: int
    turns: dict[str, Any]
    emulated: dict[str, dict[str, Any]] = field(default_factory=dict)
    predicted: dict[str, dict[str, Any]] = field(default_factory=dict)
    trained: dict[str, dict[str, Any]] = field(default_factory=dict)


def rows_of(measured: list[Measured], networks: list[str], tolerance: float) -> list[Row]:
    """Rows with speed-ups over cd-0 (of the same ranks and network) and over the first number of ranks."""
    rows: list[Row] = []
    for one in measured:
        exact = one.trained.get(EXACT)
        target = None if exact is None else _final(exact)[0] - tolerance
        for network in networks:
            group = [
                _costs(turn, one, network) | _accuracy(one.trained.get(name), target)
                for name, turn in one.turns["rows"].items()
                if network == HERE or network in one.predicted.get(name, {})
            ]
            for row in group:
                row["speedup_vs_exact"] = group[0]["epoch_seconds_median"] / row["epoch_seconds_median"]
                _set_seconds(row)
            rows += group
    first: dict[tuple[str, str], float] = {}
    for row in rows:
        base = first.setdefault((row["name"], row["network"]), row["epoch_seconds_median"])
        row["speedup_vs_first"] = base / row["epoch_seconds_median"]
    return rows


def _costs(turn: Row, one: Measured, network: str) -> Row:
    """What an epoch costs over a network."""
    about = {key: turn[key] for key in ("name", "ranks", "threads", "update", "wire")} | {"network": network}
    name = turn["name"]
    if network == HERE:
        row = about | {"kind": "measured"} | turn
    else:
        found = one.predicted[name][network]
        sent = [sum(of_rank) for of_rank in found["pair_bytes"]]
        row = about | {
            "kind": "predicted",
            "epoch_seconds_median": found["seconds"],
            "epoch_seconds_low": found["low"],
            "epoch_seconds_high": found["high"],
            **{f"{phase}_seconds": found["phases"][phase] for phase in PHASES},
            "sent_bytes_per_epoch": found["sent_bytes"],
            "sent_bytes_per_rank": found["sent_bytes"] // one.ranks,
            "max_rank_sent_bytes": max(sent),
            "messages_per_rank": found["messages"] / one.ranks,
            "exchange_bytes": turn["exchange_bytes"],
        }
    if network in one.emulated:
        seconds = one.emulated[network]["rows"][name]["epoch_seconds_median"]
        row |= {"emulated_seconds": seconds, "emulated_difference": row["epoch_seconds_median"] / seconds - 1}
    return row


def _accuracy(trained: dict[str, Any] | None, target: float | None) -> Row:
    """Final metric over seeds, and the first evaluated epoch at which their mean is at the target."""
    if trained is None or target is None:
        return {"final_metric": None, "final_metric_std": None, "epochs_to_target": None, "curve": []}
    final, deviation = _final(trained)
    curve = [
        {
            "epoch": points[0]["epoch"] + 1,
            "loss": statistics.fmean(point["loss"] for point in points),
            "test_metric": statistics.fmean(point["test_metric"] for point in points),
        }
        for points in zip(*trained["curves"], strict=True)
    ]
    reached = next((point["epoch"] for point in curve if point["test_metric"] >= target), None)
    return {
        "metric": trained["metric"],
        "final_metric": final,
        "final_metric_std": deviation,
        "seeds": len(trained["curves"]),
        "target_metric": target,
        "epochs_to_target": reached,
        "peak_rss_bytes": trained["peak_rss_bytes"],
        "curve": curve,
    }


def _final(trained: dict[str, Any]) -> tuple[float, float | None]:
    """The metric after the last epoch: mean and, of several seeds, standard deviation."""
    values = [curve[-1]["test_metric"] for curve in trained["curves"]]
    return statistics.fmean(values), statistics.stdev(values) if len(values) > 1 else None


def _set_seconds(row: Row) -> None:
    """Seconds of training: epochs times what an epoch takes over this network."""
    each, epochs = row["epoch_seconds_median"], row["epochs_to_target"]
    row["seconds_to_target"] = None if epochs is None else epochs * each
    row["curve"] = [point | {"seconds": point["epoch"] * each} for point in row["curve"]]
