"""Graph convolutions with DGL's names, arguments and parameter names, one per file."""
