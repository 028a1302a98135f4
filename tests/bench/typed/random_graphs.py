"""Layers of DGL and PyG on hundreds of random typed graphs, on ranks, beside the plain libraries, in float64.

    mpiexec -n 3 python tests/bench/typed/random_graphs.py 400         # seeds 0 to 399, a case each in turn

The first difference ends the run and names the seed and the layer.
"""

import argparse
import sys
from pathlib import Path

import torch
from mpi4py import MPI

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "harness"))


def main() -> None:
    """Run the seeds that are asked for, and print how many graphs were equal."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("count", type=int, nargs="?", default=300)
    parser.add_argument("--first", type=int, default=0)
    options = parser.parse_args()
    torch.set_default_dtype(torch.float64)
    torch.set_num_threads(1)
    from typed_parts import random_steps

    ran, refused = random_steps(range(options.first, options.first + options.count), MPI.COMM_WORLD)
    if MPI.COMM_WORLD.rank == 0:
        print(f"{MPI.COMM_WORLD.size} ranks: {ran} graphs equal, {refused} that the plain library cannot run")


if __name__ == "__main__":
    main()
