"""GFLOP/s of our float32 products beside torch's, in turn; and, where the processor is not cut down, of bfloat16.

    python tests/bench/kernels/products.py                     # this machine
    python tests/bench/kernels/products.py --avx2              # as if it had AVX2 only, numba and MKL both

Median of several rounds, results into memory that is there already. Not run by pytest.
"""

import argparse
import os
import statistics
import sys
import time

ROWS, ROUNDS = 1 << 18, 7
SHAPES = ((100, 256), (256, 256), (256, 47), (602, 256), (128, 128), (64, 64))
HASWELL = "+sse,+sse2,+sse3,+ssse3,+sse4.1,+sse4.2,+popcnt,+cx16,+avx,+avx2,+fma,+bmi,+bmi2,+lzcnt,+movbe,+f16c"


def measure() -> None:
    """One line for each shape."""
    import torch

    from distgnn import kernels
    from distgnn.config import num_threads
    from distgnn.graph.loader import use_threads
    from distgnn.kernels.runtime.tiles import registers
    from distgnn.ops.dense.products import turned_product

    use_threads(num_threads())
    print(f"{ROWS:,} rows, {num_threads()} threads, registers of {registers()[0]} bytes", flush=True)
    for a, b in SHAPES:
        rows, grads, weight = torch.randn(ROWS, a), torch.randn(ROWS, b), torch.randn(a, b)
        out, narrow = torch.empty(ROWS, b), torch.empty(ROWS, b, dtype=torch.bfloat16)
        turned = torch.empty(a, b)
        short = rows.bfloat16(), weight.bfloat16(), grads.bfloat16()
        calls = {
            "ours": lambda o=out, r=rows, w=weight: kernels.product(r.numpy(), w.numpy(), out=o.numpy()),
            "torch": lambda o=out, r=rows, w=weight: torch.mm(r, w, out=o),
            "turned, ours": lambda r=rows, g=grads: kernels.inner_product(r.numpy(), g.numpy()),
            "turned, torch": lambda o=turned, r=rows, g=grads: torch.mm(r.T, g, out=o),
        }
        calls |= (
            {}
            if os.environ.get("NUMBA_CPU_NAME")
            else {
                "bfloat16": lambda o=narrow, s=short: torch.mm(s[0], s[1], out=o),
                "turned, bfloat16": lambda s=short: turned_product(s[0], s[2]),
            }
        )
        spent = {name: [] for name in calls}
        for turn in range(ROUNDS + 1):
            for name, call in calls.items():
                started = time.perf_counter()
                call()
                if turn:
                    spent[name].append(time.perf_counter() - started)
        rates = {name: 2e-9 * ROWS * a * b / statistics.median(seconds) for name, seconds in spent.items()}
        print(f"{a} x {b}: " + ", ".join(f"{name} {rate:.0f}" for name, rate in rates.items()), flush=True)


def main() -> None:
    """Measure, in a new process where the instruction sets are to be others."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--avx2", action="store_true")
    if parser.parse_args().avx2:
        limits = {"NUMBA_CPU_NAME": "haswell", "NUMBA_CPU_FEATURES": HASWELL}
        limits |= {"MKL_ENABLE_INSTRUCTIONS": "AVX2", "ONEDNN_MAX_CPU_ISA": "AVX2"}
        os.execve(sys.executable, [sys.executable, __file__], os.environ | limits)
    measure()


if __name__ == "__main__":
    main()
