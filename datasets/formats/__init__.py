"""Readers of graphs on disk: the plain folder, OGB's layouts, Reddit, Planetoid, GraphSAINT, and arrays in pickles.

Each raises InputError for a missing file, and GraphFormatError, which names it, for a damaged one.
"""
