"""Run folders and a bench.json as the program writes them, and a reader of the page."""

import json
from html.parser import HTMLParser
from pathlib import Path

import pytest

VERSIONS = {"distgnn": "0.1.0", "python": "3.11.7", "mpi": "MPICH Version: 5.0.2", "torch": "2.13.0"}
CONFIG = """[train]
epochs = 8
lr = {lr}
metric = "accuracy"
run_dir = "run"
[model]
name = "sage"
num_layers = 3
hidden_feats = 64
[data]
parts = "parts"
checksum = "abc"
[data.graph]
name = {name}
[run]
algorithm = "{algorithm}"
update = "owners"
wire = "{wire}"
"""


def record_of(epoch: int, algorithm: str = "cd-0") -> dict:
    """An epoch's line of metrics.jsonl, with numbers that no other epoch has."""
    waits = 0.02 if algorithm == "cd-0" else 0.0001
    record = {
        "epoch": epoch,
        "loss": 2.3 * 0.9**epoch + (algorithm != "cd-0") * 0.11,
        "seconds": (4.5 if epoch == 0 else 0.11) + 0.001 * epoch,
        "aggregate_seconds": 0.022 + 0.0001 * epoch,
        "aggregate_seconds_mean": 0.021 + 0.0001 * epoch,
        "wait_seconds": 1.2 * waits,
        "wait_seconds_mean": waits,
        "wait_seconds_min": 0.7 * waits,
        "all_reduce_seconds": 0.012,
        "sent_bytes": 971_000 if algorithm == "cd-0" else 54_120,
        "exchange_waits": {"0 broadcast 64": [0.7 * waits, waits, 1.2 * waits]},
    }
    return record | (
        {f"{split}_metric": 0.2 + 0.08 * epoch for split in ("train", "valid", "test")} if epoch % 2 else {}
    )


def write_run(
    folder: Path, algorithm: str = "cd-0", epochs: int = 8, finished: bool = True, name: str = "small"
) -> Path:
    """A run folder."""
    (folder / "logs").mkdir(parents=True)
    wire = "float32" if algorithm == "cd-0" else "int8"
    config = CONFIG.format(lr=0.01, name=json.dumps(name), algorithm=algorithm, wire=wire)
    (folder / "config.toml").write_text(config)
    records = [record_of(epoch, algorithm) for epoch in range(epochs)]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    for rank in range(2):
        line = f"2026-11-22 12:28:52 started: host node7, process {40 + rank}, cores 0-11, 12 threads\n"
        (folder / "logs" / f"rank-{rank}.log").write_text(line)
    summary = {
        "metric": "accuracy", "test_metric": 0.7654, "valid_metric": 0.7712, "best_epoch": 7, "epochs": epochs,
        "epoch_seconds_median": 0.1139, "wait_share": 0.3737, "sent_bytes_per_epoch": records[-1]["sent_bytes"],
        "peak_rss_bytes": [554_000_000, 523_000_000], "final_loss": records[-1]["loss"], "ranks": 2, "threads": 12,
        "seed": 0, "versions": VERSIONS, "pair_bytes_per_epoch": [[0, 401_000], [570_000, 0]],
        "memory": {
            "peak": [554_000_000, 523_000_000], "anonymous": [354_000_000, 323_000_000],
            "blocks": {"activations": [100_000_000, 120_000_000], "held rows": [0, 0]},
        },
    }  # fmt: skip
    if finished:
        (folder / "summary.json").write_text(json.dumps(summary))
    return folder


def bench_row(name: str, ranks: int = 2, **more) -> dict:
    """A row of bench.json."""
    row = {
        "name": name, "algorithm": name, "update": "owners", "wire": "float32", "ranks": ranks, "threads": 1,
        "cores": ranks, "epoch_seconds_median": 0.131, "epoch_seconds_low": 0.125, "epoch_seconds_high": 0.14,
        "dense_seconds": 0.0535,
        "aggregate_seconds": 0.00806, "pack_seconds": 0.00083, "wait_seconds": 0.0519,
        "wait_seconds_min": 0.0411, "wait_seconds_max": 0.0618,
        "all_reduce_seconds": 0.0169, "sent_bytes_per_epoch": 971_000, "max_rank_sent_bytes": 485_000,
        "exchange_bytes": 971_000, "peak_rss_bytes": 500_000_000, "final_metric": 0.8983, "speedup_vs_exact": 1.0,
        "curve": [{"epoch": e, "seconds": 0.1 * e, "loss": 2 / e, "test_metric": 0.1 * e} for e in (1, 2, 5, 8)],
    }  # fmt: skip
    return row | more


def write_bench(path: Path, rows: list[dict], **more) -> Path:
    """A bench.json."""
    machine = {"cpu": "A processor", "cores": 2, "system": "Linux"}
    path.write_text(
        json.dumps({"machine": machine, "graph": "small", "command": ["bench", "parts"], "rows": rows} | more)
    )
    return path


def close(found, expected):
    """Are points those expected?"""
    assert [pytest.approx(point) for point in expected] == found


class Page(HTMLParser):
    """What a browser would see: tables as lists of cells, and all text; the lines as matplotlib has them.

    Args: axes: those that were drawn for this page, in its order.
    """

    VOID = ("meta", "link", "br")

    def __init__(self, source: str, axes: list):
        super().__init__()
        self.source, self.axes, self.open = source, axes, []
        self.tables: list[list[list[str]]] = []
        drawn = [line for one in axes for line in one.lines if not line.get_label().startswith("_")]
        self.lines = [(line.get_label(), list(map(tuple, line.get_xydata()))) for line in drawn]
        self.text, self.tags, self.figures = "", set(), []
        self.feed(source)
        self.close()
        assert self.open == [], "every element is closed"

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        if tag not in self.VOID:
            self.open.append(tag)
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")
        elif tag == "figure":
            self.figures.append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" in self.open:
            return
        self.text += data
        if "figure" in self.open:
            self.figures[-1] += data
        if self.open and self.open[-1] in ("td", "th"):
            self.tables[-1][-1][-1] += data

    def row(self, name: str) -> list[str]:
        """The cells of the first row that begins with this name."""
        return next(row[1:] for table in self.tables for row in table if row[0] == name)
