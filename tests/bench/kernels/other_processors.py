"""Every kernel against its reference, one line each: for processors that are not at hand, under an emulator.

    qemu-x86_64 -cpu Nehalem python tests/bench/kernels/other_processors.py      # SSE4.2 and nothing newer
    qemu-x86_64 -cpu Haswell python tests/bench/kernels/other_processors.py      # AVX2, no AVX-512
    qemu-aarch64 -L ROOT -E LD_LIBRARY_PATH=/usr/lib/aarch64-linux-gnu ROOT/usr/bin/python3.11 …   # 64-bit Arm

numba compiles for the processor that the emulator shows, and the emulator refuses what that has not. Set
NUMBA_CACHE_DIR to a new folder, and DISTGNN_NUM_THREADS=1. For Arm, ROOT holds Debian's arm64 packages of Python and
its libraries (`dpkg --add-architecture arm64`, `apt-get download python3.11:arm64 …`, `dpkg-deb -x`), PYTHONPATH a
folder with numpy, numba and llvmlite for aarch64 (`pip download --platform manylinux_2_28_aarch64
--only-binary=:all:`) and this project (`pip install --no-deps --target`). torch and MPI are not needed. 5 to 12
minutes; exits 1 where a kernel is wrong.

To train and to run the tests on Arm, in the same ROOT:

- torch 2.6.0, 2.7.1 or 2.8.0, whose wheels there are for CPUs (the newest needs CUDA), with `--no-deps`, then what it
  asks for, by name: pip takes markers (`platform_machine`) from the machine on which it runs. DGL, mpi4py and MPICH
  have wheels.
- MPICH's wheel keeps `libmpi.so.12` in its `data/lib`: MPI4PY_LIBMPI names it, and its folder joins LD_LIBRARY_PATH.
- ROOT must have no `proc`, `sys`, `dev`, `run` and `tmp` (Debian's base-files makes empty ones): QEMU would list those.
- The emulator does not start other emulated programs. `sys.executable` must name a shell script that calls it (set in a
  `sitecustomize.py` beside torch), which adds to PYTHONPATH instead of replacing it; a script `mpiexec` beside it calls
  MPICH's for this machine.
- MPIR_CVAR_CH4_CMA_ENABLE=0: QEMU has no process_vm_readv, with which MPICH copies long messages between ranks.
"""

import argparse
import platform
import sys
import time

from llvmlite import binding as llvm

from distgnn import kernels
from distgnn.kernels.check.cases import examples
from distgnn.kernels.check.cases_of import large_graph
from distgnn.kernels.check.reference import difference
from distgnn.kernels.runtime.tiles import registers


def main() -> int:
    """Print a line for each check; 1 where one was wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dtypes", default="float32,float64")
    dtypes = tuple(parser.parse_args().dtypes.split(","))
    vector, tile = registers()
    print(f"{platform.machine()} ({llvm.get_host_cpu_name()}), vectors of {vector} bytes, {tile} in a tile", flush=True)
    began, outcomes = time.monotonic(), []
    for example in examples(dtypes):
        try:
            worst = max(difference(*pair) for pair in example.pairs(getattr(kernels, example.kernel), large_graph()))
            good, text = worst <= 1, f"{worst:.3f} of the tolerance"
        except Exception as error:  # the next kernels are of interest too
            good, text = False, f"{type(error).__name__}: {error}"
        outcomes.append(good)
        print(f"{'ok' if good else 'WRONG':5}  {time.monotonic() - began:5.0f} s  {example.label}: {text}", flush=True)
    print(f"{len(outcomes)} checks, {outcomes.count(False)} wrong", flush=True)
    return 0 if all(outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
