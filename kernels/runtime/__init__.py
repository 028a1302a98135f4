"""What every kernel stands on: compiling, threads, arrays, tiles."""
