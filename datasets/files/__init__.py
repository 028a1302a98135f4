"""Graphs in one downloaded file: edge lists, matrices, METIS, and what DGL and PyG save.

Each reader raises InputError for a kind that is not read, and GraphFormatError, with the line, for a damaged file.
"""
