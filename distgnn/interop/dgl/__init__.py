"""DGL: its graph interface on a DistGraph, its message functions, models exported to it."""
