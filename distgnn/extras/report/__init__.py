"""`distgnn report`: runs, benchmarks and partitions as one HTML page that needs nothing but itself."""
