"""What `distgnn train` prints at the end: the closing table."""

from typing import Any

from distgnn.config.task import LOWER_IS_BETTER
from distgnn.system.units import human_bytes, human_metric, human_seconds, human_share


def _verified(summary: dict) -> list[tuple[str, str]]:
    """How far the last verified step was from the exact one."""
    if "gradient_error" not in summary:
        return []
    errors = f"gradient {summary['gradient_error']:.2e}, logits {summary['logits_error']:.2e}"
    return [("off the exact step", f"{errors} (relative, last verified epoch)")]


def _smoothed(summary: dict) -> list[tuple[str, str]]:
    """What Correct and Smooth gave, and whether that is what counts."""
    if "smoothed" not in summary:
        return []
    values = (human_metric(summary["metric"], summary[f"smoothed_{split}_metric"]) for split in ("test", "valid"))
    chosen = "better on validation: predict smooths" if summary["smoothed"] else "no better on validation: left out"
    return [("corrected and smoothed", f"test {', valid '.join(values)} ({chosen})")]


def closing_rows(summary: dict[str, Any], manifest: dict[str, Any]) -> list[tuple[str, str]]:
    """The closing table; epochs count from 1, as the progress does, where files count from 0."""

    def metric(split: str) -> str:
        text = human_metric(summary["metric"], summary[f"{split}_metric"])
        std = summary.get(f"{split}_metric_std")
        scale = 1 if summary["metric"] in LOWER_IS_BETTER else 100
        return text if std is None else f"{text} ± {scale * std:.2f} over {len(summary['seeds'])} seeds"

    memory = human_bytes(max(summary["peak_rss_bytes"]))
    cut = f"{manifest['method']}, {manifest['num_parts']} parts"
    return [
        (f"test {summary['metric']}", f"{metric('test')} (at the best validation epoch, {summary['best_epoch'] + 1})"),
        (f"valid {summary['metric']}", metric("valid")),
        *_smoothed(summary),
        ("epoch", f"{human_seconds(summary['epoch_seconds_median'])} (median of {summary['epochs']})"),
        ("waiting", f"{human_share(summary['wait_share'])} of the time"),
        ("exchanged", f"{human_bytes(summary['sent_bytes_per_epoch'])} per epoch, all ranks together"),
        ("replication factor", f"{manifest['replication_factor']:.3f} ({cut})"),
        *_verified(summary),
        ("peak memory", f"{memory} on the largest of {summary['ranks']} ranks × {summary['threads']} threads"),
        ("run folder", summary["run_dir"]),
    ]


def memory_rows(memory: dict[str, Any]) -> list[tuple[str, str]]:
    """The table of `--memory-report`, as summary.json has it."""
    from distgnn.graph.memory.ledger import REST, MemoryReport

    blocks = {name: values for name, values in memory["blocks"].items() if name != REST}
    return MemoryReport(memory["peak"], memory["anonymous"], blocks).rows()
