"""The second process of a first cut makes what the first one needs last."""

import subprocess
import sys

PROGRAM = """
import sys
from pathlib import Path
from distgnn.kernels.runtime import jit
from distgnn.partition import partition_graph
from distgnn.partition.last_kernels import compile_last_first

def noted(cache, signature, context):
    print(cache.lock_path.stem, signature)
    return find(cache, signature, context)

find, jit.PackageCache.load_overload = jit.PackageCache.load_overload, noted
"""
CUT = "partition_graph('communities:nodes=2000', 2, Path(sys.argv[1]))"


def looked_up(call: str, folder: object) -> list[str]:
    """Kernels with their types, in the order in which a process looks them up."""
    words = [sys.executable, "-c", PROGRAM + call, str(folder)]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines()


def test_the_second_half_of_a_cut_is_made_from_its_end(tmp_path):
    cut = looked_up(CUT, tmp_path / "whole")
    ahead = looked_up("compile_last_first(Path(sys.argv[1]))", tmp_path)
    last = cut[-len(cut) // 3 :]
    assert set(last) <= set(ahead)  # the same types: nothing is compiled a second time
    assert ahead[0] in last  # it begins where the first process ends
