"""Write the tables of docs/benchmarks from the JSON beside each page: `python tests/house/make_reports.py`.

A page names its tables: the lines after `<!-- table: NAME -->` come from `PAGE.json`. A function below makes the table
of what a command wrote; without one it is `tables.NAME` of the file, as it was written down from a run's output. A page
without JSON says which commit had its script and data.
"""

import json
import re
import statistics
from collections.abc import Callable
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "benchmarks"
TABLE = re.compile(r"(<!-- table: ([\w-]+) -->\n)((?:\|.*\n)*)")
Rows = list[list[str]]  # the first one is the head


def pages() -> list[Path]:
    return sorted(path for path in FOLDER.glob("*.md") if path.with_suffix(".json").is_file())


def page(file: Path) -> str:
    """The page with the tables that its JSON gives."""
    data = json.loads(file.with_suffix(".json").read_text())
    return TABLE.sub(lambda match: match[1] + _markdown(table(file.stem, match[2], data)), file.read_text())


def table(stem: str, name: str, data: dict) -> Rows:
    if (stem, name) in MADE:
        return MADE[stem, name](data)
    written = data["tables"][name]
    return [written["columns"], *written["rows"]]


def _markdown(rows: Rows) -> str:
    head, *lines = ["| " + " | ".join(row) + " |\n" for row in rows]
    return "".join([head, "|" + "---|" * len(rows[0]) + "\n", *lines])


def _checks(data: dict) -> Rows:
    rows = [["processor", "checks of kernels", "wrong"]]
    names = {"Haswell": "Haswell: AVX2", "Nehalem": "Nehalem: SSE4.2", "aarch64": "64-bit Arm: NEON"}
    for key, name in names.items():
        checks = data["checks"][key]
        rows.append([f"{name} (emulated)", str(len(checks)), str(sum(not check["ok"] for check in checks))])
    return rows


SIDES = {"ours": "`train`", "pyg": "plain PyG", "pyg-csr": "plain PyG, sparse tensor", "tuned": "`--recipe tuned`"}
SIDES |= {"fast": "`--recipe fast`"}
FEW_EPOCHS = 10  # whose seconds are measured, and not what they learn


def _published(data: dict) -> Rows:
    rows = [["row", "side", "seeds × epochs", "test, %", "validation, %", "note"]]
    for one in data["published"]:
        if one["epochs"] > FEW_EPOCHS:
            means = [_mean([100 * run[name] for run in one["runs"] if name in run]) for name in ("test", "valid")]
            rows.append(
                [one["row"], SIDES[one["side"]], f"{len(one['runs'])} × {one['epochs']:,}", *means, one["note"]]
            )
    return rows


def _seconds(data: dict) -> Rows:
    found: dict[str, dict[str, float]] = {}
    for one in data["published"]:
        if one["epochs"] <= FEW_EPOCHS:
            found.setdefault(one["row"], {})[one["side"]] = one["runs"][0]["epoch_seconds"]
    sides = ("ours", "pyg-csr", "pyg")
    rows = [["row", *(SIDES[side] for side in sides), "times"]]
    for row, of in found.items():
        best = min(seconds for side, seconds in of.items() if side != "ours")
        seconds = (f"{of[side]:.3g}" if side in of else "–" for side in sides)
        rows.append([row, *seconds, f"{best / of['ours']:.1f}"])
    return rows


def _to_accuracy(data: dict) -> Rows:
    """Epochs and seconds to what each seed of both Adams reaches on validation, less 0.2 %: means over seeds.

    PyG without a run has `train`'s epochs. Seconds: of an epoch in the runs of few epochs; of `--recipe fast`, the mean
    of its own run.
    """
    curves: dict[str, dict[str, list[dict]]] = {}
    epoch: dict[tuple[str, str], float] = {}
    for one in data["published"]:
        runs = [run["reached"] for run in one["runs"] if "reached" in run]
        if one["epochs"] <= FEW_EPOCHS:
            epoch[one["row"], one["side"]] = one["runs"][0]["epoch_seconds"]
        elif runs and one["side"] != "tuned":
            curves.setdefault(one["row"], {})[one["side"]] = runs
            if one["side"] == "fast":
                epoch[one["row"], "fast"] = one["runs"][0]["seconds"] / one["epochs"]
    rows = [["row", "validation, %", "`train`", "`--recipe fast`", "plain PyG", "times"]]
    for row, sides in curves.items():
        of = {"ours": sides.get("ours"), "fast": sides.get("fast")}
        peer = min((side for side in ("pyg-csr", "pyg") if (row, side) in epoch), key=lambda side: epoch[row, side])
        plain = sides.get("pyg-csr") or sides.get("pyg")
        of[peer] = plain or of["ours"]
        adams = [max(map(float, one)) for seeds in (of["ours"], of[peer]) for one in seeds or []]
        if not adams:
            continue
        level = f"{min(adams) - 0.2:.1f}"
        taken, seconds = [], {}
        for side, seeds in of.items():
            found = [
                next((one[step] for step in sorted(one, key=float) if float(step) >= float(level)), None)
                for one in seeds or []
            ]
            if None in found or not found or (row, side) not in epoch:
                taken.append("not reached" if found else "–")
                continue
            epochs = statistics.fmean(found)
            seconds[side] = epochs * epoch[row, side]
            taken.append(f"{epochs:.0f}{'' if plain or side != peer else ' (of `train`)'}: {seconds[side]:.3g} s")
        best = min((seconds[side] for side in ("ours", "fast") if side in seconds), default=None)
        rows.append([row, level, *taken, f"{seconds[peer] / best:.1f}" if best and peer in seconds else "–"])
    return rows


def _mean(values: list[float]) -> str:
    return f"{statistics.fmean(values):.2f}" + (f" ± {statistics.stdev(values):.2f}" if len(values) > 1 else "")


MADE: dict[tuple[str, str], Callable[[dict], Rows]] = {
    ("processors", "checks"): _checks,
    ("accuracy", "published"): _published,
    ("accuracy", "seconds"): _seconds,
    ("accuracy", "to-accuracy"): _to_accuracy,
}

if __name__ == "__main__":
    for file in pages():
        file.write_text(page(file))
