"""StudyResult: what a study found as tables in text, CSV and Markdown, as figures, and as JSON.

A row for each number of ranks, network and algorithm, with what was measured and predicted.

table.csv             every number, in seconds, bytes and shares
table.md              what the terminal shows
study.json            all of it, with curves, versions, processor and command
time, scaling, accuracy-4 .png .svg

What was measured so far is kept beside it: an interrupted study goes on where it was.

kept/study.json           what was asked, so that another command is refused
kept/turns-4.json         one file for each finished piece of work
kept/run-4-cd-5/          a training that was interrupted: a run folder
"""

import csv
import io
import json
import re
import shutil
import statistics
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from distgnn.bench.contenders import EXACT
from distgnn.config.task import human_metric
from distgnn.errors import InputError
from distgnn.system.atomic import OF_KINDS, check_name, replace_file
from distgnn.system.units import human_bytes, human_seconds

HERE = "here"
PHASES = ("aggregate", "dense", "pack", "wait")
Row = dict[str, Any]
COLUMNS: dict[str, tuple[str, Callable[[Any], str]]] = {  # title -> its field, and how it is shown
    "ranks": ("ranks", str),
    "network": ("network", str),
    "algorithm": ("name", str),
    "epoch": ("epoch_seconds_median", human_seconds),
    "from … to": ("epoch_seconds_low", human_seconds),
    "emulated": ("emulated_seconds", human_seconds),
    "difference": ("emulated_difference", lambda share: f"{100 * share:+.0f} %"),
    "aggregate": ("aggregate_seconds", human_seconds),
    "dense": ("dense_seconds", human_seconds),
    "packing": ("pack_seconds", human_seconds),
    "waiting": ("wait_seconds", human_seconds),
    "× cd-0": ("speedup_vs_exact", "{:.2f}".format),
    "sent/rank": ("sent_bytes_per_rank", human_bytes),
    "messages": ("messages_per_rank", "{:.0f}".format),
    "metric": ("final_metric", str),
    "epochs": ("epochs_to_target", str),
    "seconds": ("seconds_to_target", human_seconds),
    "memory": ("peak_rss_bytes", human_bytes),
}
NONE = "–"


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


class StudyResult:
    """What `dg.study` gives.

    Attributes:
        rows: a dict for each number of ranks, network and algorithm; seconds, bytes, shares.
        about: machine, versions, command, graph, settings, and lines that were said, each once.
    """

    def __init__(self, rows: list[Row], about: dict[str, Any]):
        self.rows, self.about = rows, about

    def __repr__(self) -> str:
        return f"StudyResult({len(self.rows)} rows of {self.about['graph']})\n{self.markdown()}"

    def to_pandas(self) -> Any:
        """The rows as a pandas DataFrame, without curves. Raises: InputError where pandas is not there."""
        try:
            import pandas
        except ImportError:
            raise InputError("to_pandas needs the package pandas: pip install pandas") from None
        return pandas.DataFrame.from_records([_scalars(row) for row in self.rows])

    def plot(self, folder: str | Path | None = None) -> dict[str, Any]:
        """Figures by name: time by phase, scaling over ranks, accuracy by epoch and by second for each number of ranks.

        Args: folder: where PNG and SVG files are written; None: nowhere.
        """
        from distgnn.bench.figures import draw

        return draw(self.rows, self.title, None if folder is None else Path(folder))

    @property
    def title(self) -> str:
        model = self.about["settings"]["model"]
        return f"{self.about['graph']}, {model['name']} {model['num_layers']} × {model['hidden_feats']}"

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Titles and cells of the columns that have values."""
        shown = [title for title, (key, _) in COLUMNS.items() if any(row.get(key) is not None for row in self.rows)]
        return shown, [[_cell(title, row) for title in shown] for row in self.rows]

    def notes(self) -> list[str]:
        """What the columns mean, and what was said, each once."""
        rows = self.rows
        found = ["× cd-0: how many times as fast as exact training (cd-0) an epoch is, on the same ranks and network"]
        if any(row["network"] == HERE for row in rows):
            found.append("here: medians over epochs, in turn; from … to: the middle half; all ranks share this machine")
        if any(row["network"] != HERE for row in rows):
            found.append(
                "other networks: predicted from what each rank did here, with its cores for itself; from … to: interval"
            )
        differences = [row["emulated_difference"] for row in rows if "emulated_difference" in row]
        if differences:
            median, worst = statistics.median(map(abs, differences)), max(differences, key=abs)
            found.append(
                "emulated: measured on shaped links of this machine, whose cores all ranks share; predicted differs by "
                f"{100 * median:.0f} % in the median, {100 * worst:+.0f} % at worst"
            )
        targets = {row["ranks"]: row["target_metric"] for row in rows if row.get("target_metric") is not None}
        if targets:
            name = next(row["metric"] for row in rows if row.get("metric"))
            many = max(row.get("seeds", 1) for row in rows)
            over = f"mean ± deviation over {many} seeds" if many > 1 else "of one seed"
            reach = ", ".join(f"{human_metric(name, value)} on {ranks} ranks" for ranks, value in targets.items())
            found.append(f"metric: test {name} after the last epoch, {over}")
            found.append(
                f"epochs, seconds: until the mean is cd-0's less {self.about['tolerance']:g} ({reach}); {NONE}: never"
            )
        found.append("waiting: for rows and for sums of gradients; sent/rank, messages: of an epoch, means over ranks")
        if any(row.get("peak_rss_bytes") is not None for row in rows):
            found.append("memory: peak of the largest rank, trained by itself")
        return found + self.about["lines"]

    def csv(self) -> str:
        """Every number of every row; no curves."""
        records = [_scalars(row) for row in self.rows]
        names = list(dict.fromkeys(name for record in records for name in record))
        text = io.StringIO()
        writer = csv.DictWriter(text, names, lineterminator="\n")
        writer.writeheader()
        writer.writerows(records)
        return text.getvalue()

    def markdown(self) -> str:
        titles, cells = self.table()
        lines = [titles, ["---"] * len(titles), *cells]
        table = "\n".join(f"| {' | '.join(cell.replace('|', '/') for cell in line)} |" for line in lines)
        return f"{self.title}\n\n{table}\n\n" + "".join(f"- {note}\n" for note in self.notes())

    def save(self, folder: str | Path) -> Path:
        """Write tables, figures and study.json into a folder."""
        place = Path(folder)
        texts = {"table.csv": self.csv(), "table.md": self.markdown()}
        texts["study.json"] = json.dumps(self.about | {"rows": self.rows}, indent=1) + "\n"
        try:
            place.mkdir(parents=True, exist_ok=True)
            for name, text in texts.items():
                replace_file(place / name, text.encode())
            self.plot(place)
        except OSError as error:
            raise InputError(f"cannot write {place}: {error.strerror or error}") from error
        return place


def _cell(title: str, row: Row) -> str:
    key, show = COLUMNS[title]
    value = row.get(key)
    if value is None:
        return NONE
    if key == "final_metric":
        deviation = row["final_metric_std"]
        return human_metric(row["metric"], value) + (f" ± {100 * deviation:.2f}" if deviation is not None else "")
    if key == "epoch_seconds_low":
        return f"{show(value)} … {show(row['epoch_seconds_high'])}"
    return show(value)


def _scalars(row: Row) -> Row:
    return {name: value for name, value in row.items() if not isinstance(value, list | dict)}


FOLDER, ASKED = "kept", "study.json"


class Kept:
    """The finished pieces of a study in `folder`. Args: asked: what a piece depends on; JSON."""

    def __init__(self, folder: Path, asked: dict[str, Any]):
        self.folder: Path = folder / FOLDER
        self._asked = json.loads(json.dumps(asked))

    def open(self) -> None:
        """Make the folder, or go on with it. Raises: InputError for a folder of another study, or of something else."""
        check_folder(self.folder.parent)
        file = self.folder / ASKED
        found = _read(file)
        if found is None:
            if self.folder.parent.is_dir() and any(self.folder.parent.iterdir()):
                raise InputError(f"{self.folder.parent} has files and no study: name another folder")
            try:
                self.folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise InputError(f"cannot write {self.folder}: {error.strerror or error}") from error
            self._write(file, self._asked)
        elif found != self._asked:
            names = [name for name in self._asked if found.get(name) != self._asked[name]] or ["its version"]
            raise InputError(f"{self.folder.parent} has a study with another {names[0]}: name another folder")

    def close(self) -> None:
        """Remove the folder where nothing was kept."""
        if [*self.folder.iterdir()] == [self.folder / ASKED]:
            shutil.rmtree(self.folder)
            with suppress(OSError):  # it has files
                self.folder.parent.rmdir()

    def get(self, name: str, make: Callable[[], Any], holds: Callable[[Any], bool] = lambda found: True) -> Any:
        """A piece of work: as it was kept, or done now. Args: holds: is what was kept what is wanted?"""
        file = self.folder / f"{_file_name(name)}.json"
        found = _read(file)
        if found is None or not holds(found):
            found = json.loads(json.dumps(make()))
            self._write(file, found)
        return found

    def run_folder(self, name: str) -> Path:
        return self.folder / f"run-{_file_name(name)}"

    def drop_run(self, name: str) -> None:
        shutil.rmtree(self.run_folder(name), ignore_errors=True)

    def _write(self, file: Path, content: Any) -> None:
        try:
            replace_file(file, json.dumps(content).encode())
        except OSError as error:
            raise InputError(f"cannot write {file}: {error.strerror or error}") from error


def check_folder(folder: str | Path) -> None:
    """Raise InputError where a file is named in place of a folder."""
    check_name(folder)
    place = Path(folder)
    if place.suffix.lower() in (*OF_KINDS, ".md") or (place.exists() and not place.is_dir()):
        raise InputError(f"{folder}: a study is a folder, with table.csv inside: name one")


def _file_name(name: str) -> str:
    return re.sub(r"[^\w.=-]", "+", name)


def _read(file: Path) -> Any:
    """The content of a file of ours; None where there is none, or it is damaged."""
    try:
        return json.loads(file.read_text())
    except (OSError, ValueError):
        return None
