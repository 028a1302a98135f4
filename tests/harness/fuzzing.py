"""Fuzzing: files of a valid folder are damaged, its reader reads them, and the outcome is judged.

A reader passes an input if it returns, or raises a `DistGNNError`; anything else (another exception, a peak of memory
far beyond the size of the files, a file that is written) is a finding. Checksums are made right again after most
mutations, so that the checks behind them are reached too.
"""

import random
import tracemalloc
from pathlib import Path

from fuzz_targets import Target
from mutations import MUTATIONS, flip_bytes

from distgnn.errors import DistGNNError

FREE_BYTES = 96 << 20  # of memory, whatever the size of the files (a block of a table is 4 MB of text)
BYTES_PER_BYTE = 5000  # gzip packs up to 1032 : 1, and a digit and a comma become 8 bytes


def try_one(target: Target, rng: random.Random) -> str:
    """Mutate, read, restore; returns "read", "refused", or a finding that says what happened."""
    touched: set[Path] = set()
    changed = mutate_folder(target, rng, touched)
    if tracemalloc.is_tracing():
        tracemalloc.reset_peak()
    before = tracemalloc.get_traced_memory()[0]
    size = sum(path.stat().st_size for path in target.files if path.exists())
    try:
        target.read(target.folder)
        outcome = "read"
    except DistGNNError as error:
        outcome = "refused" if str(error) and "\n" not in str(error) else f"finding: no single line: {error!r}"
    except BaseException as error:
        outcome = f"finding: {type(error).__name__}: {error} after {changed}"
    if tracemalloc.is_tracing():
        peak = tracemalloc.get_traced_memory()[1] - before
        if peak > FREE_BYTES + BYTES_PER_BYTE * size:
            outcome = f"finding: {peak} bytes of memory for {size} bytes of files after {changed}"
    target.restore(touched)
    return outcome


def written_elsewhere(targets: list[Target], root: Path) -> list[Path]:
    """Files below `root` that no reader may have made."""
    known = {path for target in targets for path in target.files}
    return [path for path in root.rglob("*") if path.is_file() and path not in known and "run" not in path.parts]


def mutate_folder(target: Target, rng: random.Random, touched: set[Path]) -> str:
    """Change one or two files, or take one away; adds them to `touched` and returns what was done."""
    done = []
    for _ in range(rng.choice((1, 1, 1, 2))):
        path = rng.choice(list(target.files))
        touched.add(path)
        if rng.random() < 0.03:
            path.unlink(missing_ok=True)
            done.append(f"{path.name} removed")
            continue
        content = path.read_bytes() if path.exists() else target.files[path]
        kind = rng.choice(MUTATIONS.get(path.suffix, (flip_bytes,)))
        path.write_bytes(kind(content, rng))
        done.append(f"{path.name} {kind.__name__}")
    if target.repair and rng.random() < 0.8:
        try:
            target.repair(target.folder, touched)
        except (ValueError, KeyError, TypeError, OSError, AttributeError, IndexError, RecursionError):
            pass
    return ", ".join(done)
