"""Figures of `distgnn bench`: where the time goes, and what accuracy costs in epochs and in seconds.

FOLDER/time.png, time.svg            an epoch of each algorithm, stacked by phase; one panel per rank count
FOLDER/accuracy.png, accuracy.svg    test metric against epochs and against seconds (with --accuracy)
FOLDER/scaling.png, scaling.svg      speed-up and bytes against ranks (several folders)
"""

from pathlib import Path
from typing import Any

PHASES = {  # key of a row -> (label, colour)
    "aggregate_seconds": ("aggregate", "#4477aa"),
    "dense_seconds": ("dense", "#bbbbbb"),
    "pack_seconds": ("pack", "#ccbb44"),
    "all_reduce_seconds": ("all-reduce", "#aa3377"),
    "wait_seconds": ("wait", "#ee6677"),
}


def draw(report: dict, folder: Path) -> list[Path]:
    """Draw the figures of a bench.json into `folder`; returns the files.

    Args:
        report: what bench.json holds: `graph` and `rows`.
    """
    import matplotlib

    matplotlib.use("Agg")
    folder.mkdir(parents=True, exist_ok=True)
    found = _save(_time_by_phase(report), folder, "time")
    if any(row.get("curve") for row in report["rows"]):
        found += _save(_accuracy(report), folder, "accuracy")
    if any("speedup_vs_first" in row for row in report["rows"]):
        found += _save(_scaling(report), folder, "scaling")
    return found


def _time_by_phase(report: dict) -> Any:
    from matplotlib import pyplot

    by_ranks = _by_ranks(report["rows"])
    figure, panels = pyplot.subplots(1, len(by_ranks), figsize=(1 + 4.5 * len(by_ranks), 4.5), squeeze=False)
    for panel, (ranks, rows) in zip(panels[0], by_ranks.items(), strict=True):
        heights = [0.0] * len(rows)
        for key, (label, colour) in PHASES.items():
            parts = [row[key] for row in rows]
            panel.bar([row["name"] for row in rows], parts, bottom=heights, label=label, color=colour)
            heights = [height + part for height, part in zip(heights, parts, strict=True)]
        panel.set_title(f"{report['graph']}, {ranks} rank{'s' * (ranks != 1)}")
        panel.set_ylabel("seconds per epoch (mean over ranks)")
        panel.tick_params(axis="x", rotation=60)
    panels[0][-1].legend()
    return figure


def _accuracy(report: dict) -> Any:
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(1, 2, figsize=(10, 4.5), sharey=True)
    for row in report["rows"]:
        curve = row.get("curve") or []
        for panel, key in zip(panels, ("epoch", "seconds"), strict=True):
            label = f"{row['name']}, {row['ranks']} ranks"
            panel.plot([point[key] for point in curve], [point["test_metric"] for point in curve], label=label)
    panels[0].set_xlabel("epochs")
    panels[1].set_xlabel("seconds of training")
    panels[0].set_ylabel("test metric")
    panels[0].set_title(report["graph"])
    panels[1].legend(fontsize="small")
    return figure


def _scaling(report: dict) -> Any:
    from matplotlib import pyplot

    figure, (speed, sent) = pyplot.subplots(1, 2, figsize=(10, 4.5))
    for name in dict.fromkeys(row["name"] for row in report["rows"]):
        rows = [row for row in report["rows"] if row["name"] == name]
        ranks = [row["ranks"] for row in rows]
        speed.plot(ranks, [row["speedup_vs_first"] for row in rows], marker="o", label=name)
        sent.plot(ranks, [row["sent_bytes_per_epoch"] / 1e6 for row in rows], marker="o", label=name)
    cores = {row["ranks"]: row["cores"] / report["rows"][0]["cores"] for row in report["rows"]}
    speed.plot(cores.keys(), cores.values(), "k:", label="cores in use")
    speed.set_title(report["graph"])
    speed.set_ylabel("speed-up (arcs per second, first folder: 1)")
    sent.set_ylabel("MB sent per epoch, all ranks")
    for panel in (speed, sent):
        panel.set_xlabel("ranks")
    speed.legend(fontsize="small")
    return figure


def _by_ranks(rows: list[dict]) -> dict[int, list[dict]]:
    found: dict[int, list[dict]] = {}
    for row in rows:
        found.setdefault(row["ranks"], []).append(row)
    return found


def _save(figure: Any, folder: Path, name: str) -> list[Path]:
    from matplotlib import pyplot

    figure.tight_layout()
    paths = [folder / f"{name}.{kind}" for kind in ("png", "svg")]
    for path in paths:
        figure.savefig(path, dpi=150)
    pyplot.close(figure)
    return paths
