"""`distgnn bench --time-to-accuracy`: checks, the race, bench.json, figures and the table."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from distgnn.cli.display import print_columns
from distgnn.cli.output_files import write_json
from distgnn.errors import InputError
from distgnn.system.units import human_seconds, human_share

COLUMNS = ["contestant", "reached", "passes", "seconds", "evaluation", "best valid", "test there"]


@dataclass(frozen=True)
class Race:
    """What is asked for.

    Args: target: validation accuracy, a share or in percent; limit: seconds of training of each run; past: end a run
        after this many times the seconds to the target (0: at the limit); seeds: how many.
    """

    target: float
    contestants: Sequence[str]
    limit: float
    first_seed: int
    seeds: int
    threads: int | None
    past: float = 0.0

    def check(self, parts: list[str], train: Any) -> None:
        """Raise InputError for what cannot be run. `train`: the program's command of that name."""
        from distgnn.bench.steps.contestants import SAMPLING, Contestant
        from distgnn.partition import read_manifest

        if len(parts) != 1:
            raise InputError("--time-to-accuracy is for one partition folder")
        samples = any(Contestant(text).samples for text in self.contestants)
        if samples and read_manifest(parts[0])["num_parts"] != 1:
            raise InputError(f"contestant {SAMPLING} is one process: give a folder made with --parts 1")
        if not 0 < self.share < 1:
            raise InputError(f"time_to_accuracy is {self.target}: expected an accuracy, such as 0.9 or 90")
        if not (self.limit > 0 and self.seeds >= 1):
            raise InputError(f"limit is {self.limit} s, seeds is {self.seeds}: expected positive numbers")
        if not (self.past == 0 or self.past >= 1):
            raise InputError(f"past_target is {self.past}: expected 0 (run until the limit), or at least 1")
        for text in self.contestants:
            Contestant(text).check(parts[0], train)

    @property
    def share(self) -> float:
        """The target as a share."""
        return self.target if self.target < 1 else self.target / 100


def time_to_accuracy(race: Race, parts: str, about: dict[str, Any], out: str, figures: str | None) -> None:
    """Run it; `about`: what bench.json says of machine, graph and command."""
    from distgnn.bench.steps import time_to_accuracy as bench
    from distgnn.bench.steps.contestants import Contestant, End
    from distgnn.bench.steps.figures import draw

    contestants = [Contestant(text) for text in race.contestants]
    seeds = list(range(race.first_seed, race.first_seed + race.seeds))
    end = End(race.limit, race.share, race.past)
    runs = bench.race(parts, contestants, end, seeds, race.threads)
    rows = bench.medians(runs)
    report = about | {"target": race.share, "limit_seconds": race.limit, "past_target": race.past}
    report |= {"rows": rows, "runs": runs}
    write_json(out, report)
    if figures is not None:
        draw(report, Path(figures))
    title = f"{about['graph']}, to {human_share(race.share)} validation accuracy, median of {race.seeds} seeds"
    print_columns(title, COLUMNS, [cells for row in rows for cells in _rows(row)])


def _rows(row: dict[str, Any]) -> list[list[str]]:
    """Cells of a contestant, and of its smoothed scores where it has some."""
    rows = [_cells(row, "", row["contestant"])]
    return rows + ([_cells(row, "smoothed_", "  corrected and smoothed")] if "smoothed_best_valid" in row else [])


def _cells(row: dict[str, Any], prefix: str, name: str) -> list[str]:
    def value(key: str, text: Any) -> str:
        found = row[f"{prefix}{key}"]
        return "-" if found is None else text(found)

    return [
        name,
        "" if prefix else f"{row['reached']} of {row['seeds']}",
        value("passes_to_target", str),
        value("seconds_to_target", human_seconds),
        value("evaluation_seconds_to_target", human_seconds),
        value("best_valid", human_share),
        value("test_at_best", human_share),
    ]
