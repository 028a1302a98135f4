"""How this rank's sums and products run on its part: measured once per machine, kept beside the part's arrays.

    parts/part-0/tuning.json    {"machine": "…", "seconds": 0.8, "blocked": [512, …], "own_products": true}

blocked: the row sizes for which sums go by blocks of sources (dense graphs only);
own_products: float32 matrices are multiplied by our kernels, not by torch. The file is no part of the partition: the
manifest does not name it, losing it costs about a second, and what stands in it changes the time of a training step,
and of its results nothing but, with blocks and products, the rounding. Ranks may therefore choose differently.
"""

import contextlib
import json
import math
import os
import time
from pathlib import Path

import torch

from distgnn import kernels
from distgnn.kernels.runtime.tiles import registers
from distgnn.partition import LocalGraph
from distgnn.system.processor import processor
from distgnn.system.regular_file import read_text

TUNING = "tuning.json"
FEWEST_ARCS = 1 << 20  # in the caches nothing is to be gained
PRODUCT_ROWS, PRODUCT_WIDTH, PRODUCT_ROUNDS = 1 << 15, 256, 4  # fewer rows would time the sum of partial results
WORTH = 0.92  # torch's products replace ours if they take less than this share of the time


def part_tuning(part_folder: Path, local: LocalGraph) -> kernels.Tuning:
    """What was found best for sums and products of this part on this machine; measured if no stored result exists."""
    block = local.blocks["owned_owned"]
    if len(block.indices) < FEWEST_ARCS or os.environ.get("DISTGNN_TUNING") == "0":
        return kernels.Tuning()
    found = _read(part_folder / TUNING)
    if found is None:
        start = time.perf_counter()
        blocked = kernels.tune_rows(block.indptr, block.indices, local.num_owned)
        found = kernels.Tuning(blocked, own_products_pay())
        _write(part_folder / TUNING, found, time.perf_counter() - start)
    return found


def own_products_pay() -> bool:
    """Whether our float32 product and its transpose are as quick as torch's here, taking turns."""
    rows, weight = torch.ones(PRODUCT_ROWS, PRODUCT_WIDTH), torch.ones(PRODUCT_WIDTH, PRODUCT_WIDTH)
    out, turned = torch.empty_like(rows), torch.empty_like(weight)
    least: dict[str, float] = {}
    arrays = rows.numpy(), weight.numpy(), out.numpy()
    for _ in range(PRODUCT_ROUNDS):
        for name, call in {
            "own": lambda: (kernels.product(*arrays[:2], out=arrays[2]), kernels.inner_product(arrays[0], arrays[2])),
            "torch": lambda: (torch.mm(rows, weight, out=out), torch.mm(rows.T, out, out=turned)),
        }.items():
            start = time.perf_counter()
            call()
            least[name] = min(least.get(name, math.inf), time.perf_counter() - start)
    return least["torch"] >= WORTH * least["own"]


def machine() -> str:
    """What a choice depends on: processor, vector registers, threads."""
    return f"{processor()}, registers of {registers()[0]} bytes, {kernels.get_num_threads()} threads"


def _read(path: Path) -> kernels.Tuning | None:
    """What was found on this machine, or None: a file that is missing, foreign or damaged is measured again."""
    try:
        saved = json.loads(read_text(path))
        if saved["machine"] != machine():
            return None
        return kernels.Tuning(frozenset(int(size) for size in saved["blocked"]), bool(saved["own_products"]))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
        return None


def _write(path: Path, found: kernels.Tuning, seconds: float) -> None:
    content = {"machine": machine(), "seconds": round(seconds, 3)}
    content |= {"blocked": sorted(found.blocked), "own_products": found.own_products}
    temporary = path.with_name(f".{TUNING}.{os.getpid()}")
    with contextlib.suppress(OSError):
        try:
            temporary.write_text(json.dumps(content) + "\n")
            os.replace(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)
