"""GFLOP/s of our products of float32 and bfloat16 rows beside torch's and the processor's peak, in turn.

    python tests/bench/kernels/products.py                     # this machine
    python tests/bench/kernels/products.py --avx2              # as if it had AVX2 only, numba and MKL both

Peak: fused multiply-adds of registers with registers, as many as a product has. Medians of several rounds, results
into memory that is there already. Not run by pytest.
"""

import argparse
import os
import statistics
import sys
import time

ROWS, ROUNDS = 1 << 16, 9
SHAPES = ((100, 256), (256, 256), (256, 47), (602, 256), (128, 128), (64, 64))
HASWELL = "+sse,+sse2,+sse3,+ssse3,+sse4.1,+sse4.2,+popcnt,+cx16,+avx,+avx2,+fma,+bmi,+bmi2,+lzcnt,+movbe,+f16c"


def measure() -> None:
    """One line for each shape."""
    import numpy as np
    import torch

    from distgnn import kernels
    from distgnn.config import num_threads
    from distgnn.graph.loader import use_threads
    from distgnn.kernels.rowwise.narrow_product import most_vectors
    from distgnn.kernels.runtime.jit import kernel
    from distgnn.kernels.runtime.threads import run
    from distgnn.kernels.runtime.tiles import Tile, registers
    from distgnn.kernels.simd.vectors import fma, full, store, zeros
    from distgnn.ops.rowwise.products import turned_product

    lanes, vectors = registers()[0] // 4, most_vectors()
    tile = Tile(lanes, tuple(range(0, lanes * vectors, lanes)), (0,) * vectors)

    @kernel
    def spin(start, stop, factor, turns, out):
        """Six sums of as many vectors as in a product, without memory."""
        for part in range(start, stop):
            a = b = c = d = e = f = zeros(tile, out)
            for _ in range(turns):
                x = full(tile, out, factor)
                a, b, c = fma(x, factor, a), fma(x, factor, b), fma(x, factor, c)
                d, e, f = fma(x, factor, d), fma(x, factor, e), fma(x, factor, f)
            for row, sums in enumerate((a, b, c, d, e, f)):
                store(tile, out, (part * 6 + row) * 64, sums)

    use_threads(num_threads())
    print(f"{ROWS:,} rows, {num_threads()} threads, registers of {registers()[0]} bytes", flush=True)
    parts = list(range(num_threads() + 1))
    sink = np.zeros((num_threads() * 6, 64), np.float32)
    for a, b in SHAPES:
        rows, grads, weight = torch.randn(ROWS, a), torch.randn(ROWS, b), torch.randn(a, b)
        out, narrow = torch.empty(ROWS, b), torch.empty(ROWS, b, dtype=torch.bfloat16)
        turned = torch.empty(a, b)
        short = rows.bfloat16(), weight.bfloat16(), grads.bfloat16()
        bits = [one.view(torch.uint16).numpy() for one in (short[0], short[2], narrow)]
        turns = ROWS * a * b // (num_threads() * 6 * lanes * vectors)
        calls = {
            "peak": lambda t=turns: run(spin, parts, np.float32(0.5), t, sink),
            "ours": lambda o=out, r=rows, w=weight: kernels.product(r.numpy(), w.numpy(), out=o.numpy()),
            "torch": lambda o=out, r=rows, w=weight: torch.mm(r, w, out=o),
            "turned, ours": lambda r=rows, g=grads: kernels.inner_product(r.numpy(), g.numpy()),
            "turned, torch": lambda o=turned, r=rows, g=grads: torch.mm(r.T, g, out=o),
        }
        calls["bfloat16, ours"] = lambda x=bits, w=weight: kernels.product(x[0], w.numpy(), out=x[2])
        calls["turned, bfloat16, ours"] = lambda x=bits: kernels.inner_product(x[0], x[1])
        calls["bfloat16, torch"] = lambda o=narrow, s=short: torch.mm(s[0], s[1], out=o)
        calls["turned, bfloat16, torch"] = lambda s=short: turned_product(s[0], s[2])
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
