"""What every kernel stands on: compiling, threads, arrays, tiles, and the check before first use."""
