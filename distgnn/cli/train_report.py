"""What `distgnn train` prints: a line per epoch and the closing table."""

from distgnn.cli.display import human_bytes, human_metric, human_seconds, human_share
from distgnn.config.task import LOWER_IS_BETTER


def epoch_text(record: dict, metric: str) -> str:
    """What the progress bar shows of an epoch."""
    text = f"loss {record['loss']:.4f}  {human_seconds(record['seconds'])}/epoch"
    valid = record.get("valid_metric")
    return text if valid is None else f"{text}  valid {human_metric(metric, valid)}"


def _verified(summary: dict) -> list[tuple[str, str]]:
    """How far the last verified step was from the exact one."""
    if "gradient_error" not in summary:
        return []
    errors = f"gradient {summary['gradient_error']:.2e}, logits {summary['logits_error']:.2e}"
    return [("off the exact step", f"{errors} (relative, last verified epoch)")]


def closing_rows(summary: dict, manifest: dict) -> list[tuple[str, str]]:
    """The closing table."""

    def metric(split: str) -> str:
        text = human_metric(summary["metric"], summary[f"{split}_metric"])
        std = summary.get(f"{split}_metric_std")
        scale = 1 if summary["metric"] in LOWER_IS_BETTER else 100
        return text if std is None else f"{text} ± {scale * std:.2f} over {len(summary['seeds'])} seeds"

    memory = human_bytes(max(summary["peak_rss_bytes"]))
    cut = f"{manifest['method']}, {manifest['num_parts']} parts"
    return [
        (f"test {summary['metric']}", f"{metric('test')} (at the best validation epoch, {summary['best_epoch']})"),
        (f"valid {summary['metric']}", metric("valid")),
        ("epoch", f"{human_seconds(summary['epoch_seconds_median'])} (median of {summary['epochs']})"),
        ("waiting", f"{human_share(summary['wait_share'])} of the time"),
        ("exchanged", f"{human_bytes(summary['sent_bytes_per_epoch'])} per epoch, all ranks together"),
        ("replication factor", f"{manifest['replication_factor']:.3f} ({cut})"),
        *_verified(summary),
        ("peak memory", f"{memory} on the largest of {summary['ranks']} ranks × {summary['threads']} threads"),
        ("run folder", summary["run_dir"]),
    ]
