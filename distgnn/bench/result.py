"""StudyResult: the rows of a study as tables in text, CSV, Markdown and LaTeX, as figures, and as JSON.

table.csv             every number, in seconds, bytes and shares
table.md, table.tex   what the terminal shows
study.json            all of it, with curves, versions, processor and command
time, scaling, accuracy-4 .png .svg
"""

import csv
import io
import json
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

from distgnn.bench.rows import HERE, Row
from distgnn.config.task import human_metric
from distgnn.errors import InputError
from distgnn.system.atomic import replace_file
from distgnn.system.units import human_bytes, human_seconds

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
LATEX = {
    "…": r"\dots",
    "×": r"$\times$",
    "±": r"$\pm$",
    "–": "--",
    "%": r"\%",
    "_": r"\_",
    "&": r"\&",
    "#": r"\#",
    "µ": r"$\mu$",
}


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

    def latex(self) -> str:
        """A `tabular` without packages; notes stand in comments."""
        titles, cells = self.table()
        rows = "".join(f"{' & '.join(map(_tex, line))} \\\\\n" for line in cells)
        notes = "".join(f"% {note}\n" for note in [self.title, *self.notes()])
        columns = "".join("l" if title in ("network", "algorithm") else "r" for title in titles)
        head = " & ".join(map(_tex, titles))
        return (
            f"{notes}\\begin{{tabular}}{{{columns}}}\n\\hline\n{head} \\\\\n\\hline\n{rows}\\hline\n\\end{{tabular}}\n"
        )

    def save(self, folder: str | Path) -> Path:
        """Write tables, figures and study.json into a folder."""
        place = Path(folder)
        texts = {"table.csv": self.csv(), "table.md": self.markdown(), "table.tex": self.latex()}
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


def _tex(text: str) -> str:
    return "".join(LATEX.get(letter, letter) for letter in text)
