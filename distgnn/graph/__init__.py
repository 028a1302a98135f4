"""DistGraph, what models see of a graph: one rank's rows, exchanges and arcs."""
