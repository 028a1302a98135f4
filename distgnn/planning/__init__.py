"""Which cluster, which flags: epochs and memory of any number of ranks, from a sample cut, prices and a network."""
