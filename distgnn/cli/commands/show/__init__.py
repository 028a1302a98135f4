"""Commands that show what others made: a partition's numbers, a page about runs, benchmarks and partitions."""
