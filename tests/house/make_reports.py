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


def _replay(data: dict) -> Rows:
    links = {"10gbit": "10 Gbit/s", "1gbit": "1 Gbit/s", "100mbit": "0.1 Gbit/s"}
    rows = [["link", "graph", "algorithm", "replayed, s", "real, s", "least to most, real", "error", "memory error"]]
    cases: dict[tuple, list[dict]] = {}
    for row in data["rows"]:
        cases.setdefault((row["rate"], row["graph"], row["algorithm"]), []).append(row)
    for runs in cases.values():
        keys = ("predicted_seconds", "real_seconds", "predicted_memory", "real_memory")
        predicted, real, told, used = (statistics.median(run[key] for run in runs) for key in keys)
        name = runs[0]["graph"]
        graph = "RMAT 2^17" if name.startswith("rmat") else name.removeprefix("ogb/").replace("_", "-")
        span = [run["real_seconds"] for run in runs]
        errors = [f"{value:+.1%}".replace("%", " %") for value in (predicted / real - 1, told / used - 1)]
        seconds = [f"{predicted:.3f}", f"{real:.3f}", f"{min(span):.3f} to {max(span):.3f}"]
        rows.append([links[runs[0]["rate"]], graph, runs[0]["algorithm"], *seconds, *errors])
    return rows


def _checks(data: dict) -> Rows:
    rows = [["processor", "checks of kernels", "wrong"]]
    names = {"Haswell": "Haswell: AVX2", "Nehalem": "Nehalem: SSE4.2", "aarch64": "64-bit Arm: NEON"}
    for key, name in names.items():
        checks = data["checks"][key]
        rows.append([f"{name} (emulated)", str(len(checks)), str(sum(not check["ok"] for check in checks))])
    return rows


def _published(data: dict) -> Rows:
    sides = {"ours": "`train`", "pyg": "plain PyG", "tuned": "`--recipe tuned`", "fast": "`--recipe fast`"}
    rows = [["row", "side", "seeds × epochs", "test, %", "seconds of a run", "note"]]
    for one in data["published"]:
        tests = [100 * run["test"] for run in one["runs"]]
        mean = f"{statistics.fmean(tests):.2f}" + (f" ± {statistics.stdev(tests):.2f}" if len(tests) > 1 else "")
        taken = [run["seconds"] for run in one["runs"] if "seconds" in run]
        seconds = f"{statistics.median(taken):.0f}" if taken else ""
        rows.append(
            [one["row"], sides[one["side"]], f"{len(tests)} × {one['epochs']:,}", mean, seconds, one.get("note", "")]
        )
    return rows


MADE: dict[tuple[str, str], Callable[[dict], Rows]] = {
    ("replay", "epochs"): _replay,
    ("processors", "checks"): _checks,
    ("accuracy", "published"): _published,
}

if __name__ == "__main__":
    for file in pages():
        file.write_text(page(file))
