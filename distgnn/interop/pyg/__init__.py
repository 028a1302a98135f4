"""PyTorch Geometric: its layers on a DistGraph, graphs and models exported to it."""
