"""Instructions per arc of the inner loops of sums and maxima, counted in their machine code.

    python tests/bench/kernels/machine_code.py [--target aarch64-unknown-linux-gnu] [--widths 16,47,100,256]

Where the processor's counters cannot be read this says how much work an arc is. With another target the same kernels,
cut for its registers, are lowered by LLVM for that machine instead: it shows that nothing in them belongs to x86.
"""

import argparse
import itertools
import re

import llvmlite.binding as llvm
import numpy as np
from numba import njit

from distgnn.kernels.graph import aggregate, extremes
from distgnn.kernels.runtime import tiles
from distgnn.kernels.simd.llvm import cache_lines

REGISTERS = {"aarch64": (16, 20), "x86_64": (64, 16)}  # as tiles.registers() finds them there
FLOATS, INTS = np.empty((0, 1), np.float32), np.empty(0, np.int64)


def sum_case(tile, rows):
    out = np.empty(rows.shape, np.float32)
    none = FLOATS[:, 0]
    return aggregate._sum_kernel(tile, False, False), (rows, FLOATS, INTS, none, none, out, False, False)


def max_case(tile, rows):
    out, winner, none = np.empty(rows.shape, np.float32), np.empty(rows.shape, np.int32), FLOATS[:, 0]
    arguments = rows, none, INTS, none, out, winner, np.float32(1), False
    return extremes._extreme_kernel(tile, True, True, False), arguments


CASES = {"sum": (sum_case, 1), "max with winners": (max_case, 2)}  # and sets of registers that it keeps


def assembly(kernel, arguments, target):
    """The kernel's machine code as text, for this machine or for a target triple."""
    indptr, indices = np.zeros(1, np.int64), np.empty(0, np.int32)
    compiled = njit(nogil=True, error_model="numpy")(kernel.py_func)
    compiled(0, 0, 0, 16, indptr, indices, *arguments)
    (signature,) = compiled.signatures
    if target is None:
        return compiled.inspect_asm(signature)
    code = alone(compiled.inspect_llvm(signature))
    foreign = re.findall(r"call.*@(llvm\.x86[\w.]*)", code)
    if foreign:
        raise SystemExit(f"{kernel.py_func.__name__} calls {', '.join(sorted(set(foreign)))}")
    code = re.sub(r'target triple = ".*"', f'target triple = "{target}"', code)
    machine = llvm.Target.from_triple(target).create_target_machine(opt=3)
    code = re.sub(r'target datalayout = ".*"', f'target datalayout = "{machine.target_data}"', code)
    code = re.sub(r'"target-(cpu|features)"="[^"]*"', "", code)
    module = llvm.parse_assembly(code)
    module.verify()
    return machine.emit_assembly(module)


def alone(code):
    """The module with its first function, the kernel, and none of numba's own around it."""
    _kernel, *others = re.findall(r"^define .*?^}\n", code, re.M | re.S)
    for other in others:
        code = code.replace(other, "")
    return code


def inner_loops(code):
    """The instructions of each innermost loop: from a label to a jump back to it, no such loop between."""
    lines = code.split(".Lfunc_end0")[0].splitlines()
    labels = {match[1]: n for n, line in enumerate(lines) if (match := re.match(r"(\.LBB\w+):", line))}
    jumps = [(match[1], n) for n, line in enumerate(lines) if (match := re.search(r"\t.*(\.LBB\w+)$", line))]
    loops = [(labels[label], n) for label, n in jumps if labels.get(label, n) < n]
    for first, last in loops:
        if not any(first <= a and b <= last for a, b in loops if (a, b) != (first, last)):
            yield [line.strip() for line in lines[first : last + 1] if re.match(r"\t[a-z]", line)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--target")
    parser.add_argument("--widths", default="16,47,100,256")
    options = parser.parse_args()
    if options.target:
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()
        tiles.registers = lambda: REGISTERS[options.target.split("-")[0]]
    widths = [int(width) for width in options.widths.split(",")]
    for (name, (make, sets)), dtype, width in itertools.product(CASES.items(), (np.float32, np.uint16), widths):
        _, tile = tiles.row_tiles(width, np.float32, tiles.registers()[1] // sets)[0]
        code = assembly(*make(tile, np.empty((0, width), dtype)), options.target)
        for count in per_arc(code, len(list(cache_lines(tile, np.dtype(dtype).itemsize)))):
            print(f"{name}, {np.dtype(dtype).name}, {tile.width} of {width} columns: {count:.1f} an arc")


def per_arc(code, lines):
    """Instructions per arc of each innermost loop that asks for rows, each in so many cache lines."""
    for body in inner_loops(code):
        asked = sum(instruction.startswith(("prefetch", "prfm")) for instruction in body)
        if asked:
            yield len(body) * lines / asked


if __name__ == "__main__":
    main()
