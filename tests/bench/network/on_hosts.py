"""Run any MPI program on hosts with links of a given rate: one rank per host.

python tests/bench/network/on_hosts.py --hosts 4 --rate 1gbit PROGRAM.py ARGUMENTS
"""

import argparse

from hosts import hosts


def main() -> None:
    """Make the hosts, run, remove them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hosts", type=int, default=4)
    parser.add_argument("--rate", default="1gbit")
    parser.add_argument("words", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    with hosts(options.hosts, options.rate) as run:
        run(*options.words)


if __name__ == "__main__":
    main()
