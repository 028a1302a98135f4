"""Hostile files for the page: tests/fuzz/fuzz_targets.py takes these, too."""

import shutil
import sys
from pathlib import Path

from fuzzing import Target

sys.path.append(str(Path(__file__).parent))
from report_inputs import bench_row, write_bench, write_run

KINDS = SLOW = FORGIVING = DRAWN = ("page",)  # what is damaged counts as not there


def targets(root: Path) -> list[Target]:
    from distgnn.extras.report.command import make_page
    from distgnn.extras.report.read import read_inputs

    folder = root / "page"
    write_run(folder / "one", "cd-5", epochs=4)
    many = folder / "many"
    for seed in (0, 1):
        write_run(many / f"seed-{seed}", epochs=2)
    for name in ("config.toml", "summary.json"):
        shutil.copy(many / "seed-0" / name, many)
    rows = [bench_row("cd-0", ranks, speedup_vs_first=1.0) for ranks in (2, 4)]
    write_bench(folder / "bench.json", rows)

    def read(folder: Path) -> None:
        make_page(read_inputs(str(folder / name) for name in ("one", "many", "bench.json")))

    return [Target("page", folder, read)]
