"""What `distgnn train` prints at the end: the closing table."""

from typing import Any

from distgnn.config.task import HELD_OUT, LOWER_IS_BETTER
from distgnn.system.units import human_bytes, human_metric, human_seconds, human_share


def closing_rows(summary: dict[str, Any], manifest: dict[str, Any]) -> list[tuple[str, str]]:
    """The closing table; epochs count from 1, as the progress does, where files count from 0."""

    def metric(split: str) -> str:
        text = human_metric(summary["metric"], summary[f"{split}_metric"])
        std = summary.get(f"{split}_metric_std")
        scale = 1 if summary["metric"] in LOWER_IS_BETTER else 100
        return text if std is None else f"{text} ± {scale * std:.2f} over {len(summary['seeds'])} seeds"

    smoothed, verified = [], []
    if "smoothed" in summary:  # by Correct and Smooth
        test, valid = (human_metric(summary["metric"], summary[f"smoothed_{split}_metric"]) for split in HELD_OUT[::-1])
        counts = "better on validation: predict smooths" if summary["smoothed"] else "no better on validation: left out"
        smoothed.append(("corrected and smoothed", f"test {test}, valid {valid} ({counts})"))
    if "gradient_error" in summary:
        errors = f"gradient {summary['gradient_error']:.2e}, logits {summary['logits_error']:.2e}"
        verified.append(("off the exact step", f"{errors} (relative, last verified epoch)"))
    memory = human_bytes(max(summary["peak_rss_bytes"]))
    cut = f"{manifest['method']}, {manifest['num_parts']} parts"
    return [
        (f"test {summary['metric']}", f"{metric('test')} (at the best validation epoch, {summary['best_epoch'] + 1})"),
        (f"valid {summary['metric']}", metric("valid")),
        *smoothed,
        ("epoch", f"{human_seconds(summary['epoch_seconds_median'])} (median of {summary['epochs']})"),
        ("waiting", f"{human_share(summary['wait_share'])} of the time"),
        ("exchanged", f"{human_bytes(summary['sent_bytes_per_epoch'])} per epoch, all ranks together"),
        ("replication factor", f"{manifest['replication_factor']:.3f} ({cut})"),
        *verified,
        ("peak memory", f"{memory} on the largest of {summary['ranks']} ranks × {summary['threads']} threads"),
        ("run folder", summary["run_dir"]),
    ]


def memory_rows(memory: dict[str, Any]) -> list[tuple[str, str]]:
    """The table of `--memory-report`, as summary.json has it."""
    from distgnn.graph.memory.report import REST, MemoryReport

    blocks = {name: values for name, values in memory["blocks"].items() if name != REST}
    return MemoryReport(memory["peak"], memory["anonymous"], blocks).rows()
