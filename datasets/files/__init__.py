"""Graphs in one downloaded file: edge lists, matrices, METIS, and what DGL and PyG save."""
