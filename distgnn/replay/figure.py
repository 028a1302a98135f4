"""The figure of a replay: every rank's epoch by phase, and the chain that makes the epoch as long as it is."""

from pathlib import Path
from typing import Any

from distgnn.bench.figures import PHASES

COLUMNS = ("aggregate", "dense", "pack", "wait")


def draw(outcomes: list[dict[str, Any]], folder: Path) -> list[Path]:
    """FOLDER/replay.png and .svg: a panel for each network that was played; returns the files."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    folder.mkdir(parents=True, exist_ok=True)
    size = (2.5 + 4.5 * len(outcomes), 4.5)
    figure, panels = pyplot.subplots(1, len(outcomes), figsize=size, squeeze=False, sharey=True, layout="constrained")
    for panel, found in zip(panels[0], outcomes, strict=True):
        ranks = sorted(found["of_rank"], key=lambda rank: -rank["compute_seconds"])
        heights = [0.0] * len(ranks)
        for name in COLUMNS:
            label, colour, hatch = PHASES[f"{name}_seconds"]
            parts = [1000 * rank[f"{name}_seconds"] for rank in ranks]
            panel.bar(range(len(ranks)), parts, bottom=heights, label=label, color=colour, hatch=hatch, width=1.0)
            heights = [height + part for height, part in zip(heights, parts, strict=True)]
        panel.axhline(1000 * found["epoch_seconds"], color="black", linewidth=1, linestyle=(0, (6, 3)))
        panel.set_title(f"{found['title']}\nepoch {1000 * found['epoch_seconds']:.3g} ms")
        panel.set_xlabel("ranks, the busiest first")
    panels[0][0].set_ylabel("ms per epoch, predicted")
    figure.legend(*panels[0][0].get_legend_handles_labels(), loc="outside right center")
    files = [folder / f"replay.{ending}" for ending in ("png", "svg")]
    for path in files:
        figure.savefig(path, dpi=150)
    pyplot.close(figure)
    return files
