"""The table of a soak: fault, detected after, healed after, lost.

python tests/bench/faults/soak_table.py WORK/soak.jsonl …       as Markdown, of one or more soaks

detected    from the fault to the launcher's word of it. A rank that was paused for up to 1.3 times --timeout is
            noticed where it did not come back in time; a killed launcher by the end of its last process
healed      from the fault to the first epoch that had not been done before it
lost        epochs that were done twice
"""

import json
import statistics
import sys
from pathlib import Path

# What is done, and how often beside the others.
KINDS = {
    "rank killed": 6,
    "rank killed twice": 3,  # the second time before a checkpoint was gained: one rank goes on
    "starter killed": 3,
    "proxy killed": 3,
    "rank paused": 3,
    "rank stopped": 1,
    "launcher killed": 1,
    "launcher killed at its start": 1,
}
GROWTH = 1.2  # of memory, last quarter of the faults over the first


def grown(rows: list[dict]) -> list[dict]:
    """Findings of memory that grew."""
    found = []
    for name in ("rank MB", "launcher MB"):
        values = [row[name] for row in rows if row.get(name)]
        quarter = len(values) // 4
        if quarter >= 3:
            first, last = statistics.median(values[:quarter]), statistics.median(values[-quarter:])
            print(f"{name}: {first:.0f} in the first quarter of the faults, {last:.0f} in the last (medians)")
            if last > GROWTH * first:
                found.append({"finding": f"memory grew: {name} {first:.0f} to {last:.0f}"})
    return found


def report(rows: list[dict], num_runs: int) -> None:
    faults, findings = [row for row in rows if "fault" in row], [row for row in rows if "finding" in row]
    changed = sum(row.get("changed ranks", False) for row in rows)
    print(f"{num_runs} runs ({changed} changed ranks), {len(faults)} faults, {len(findings)} findings", flush=True)
    print(f"{'fault':29} {'count':>5} {'detected after':>20} {'healed after':>20} {'epochs lost':>12}  (median, most)")
    for kind in KINDS:
        here = [row for row in faults if row["fault"] == kind]
        columns = [_spread([row[name] for row in here if row[name] is not None]) for name in ("detected", "healed")]
        lost = [row["lost"] for row in here]
        lost_text = f"{statistics.median(lost):.0f}, {max(lost)}" if lost else "–"
        print(f"{kind:29} {len(here):5d} {columns[0]:>20} {columns[1]:>20} {lost_text:>12}")
    for row in findings:
        print("FINDING", json.dumps(row), flush=True)


def _spread(seconds: list[float]) -> str:
    return f"{statistics.median(seconds):.2f} s, {max(seconds):.2f} s" if seconds else "–"


def markdown(rows: list[dict]) -> str:
    """The table of a report."""
    lines = ["| fault | count | detected after | healed after | epochs lost |", "|---|---|---|---|---|"]
    for kind in KINDS:
        here = [row for row in rows if row.get("fault") == kind]
        times = [_spread([row[name] for row in here if row[name] is not None]) for name in ("detected", "healed")]
        lost = [row["lost"] for row in here]
        lost_text = f"{statistics.median(lost):.0f}, {max(lost)}" if lost else "–"
        lines.append(f"| {kind} | {len(here)} | {times[0]} | {times[1]} | {lost_text} |")
    return "\n".join(lines)


def main() -> None:
    """Print the table of the files that the command line names."""
    rows = [json.loads(line) for name in sys.argv[1:] for line in Path(name).read_text().splitlines()]
    print(markdown(rows))
    runs = [row["changed ranks"] for row in rows if "changed ranks" in row]
    faults = sum("fault" in row for row in rows)
    print(f"\n{len(runs)} runs to their end ({sum(runs)} changed ranks), {faults} faults; median, most")
    grown(rows)
    for row in rows:
        if "finding" in row:
            print("FINDING", json.dumps(row))


if __name__ == "__main__":
    main()
