"""Readers of graphs on disk: the plain folder, OGB's layouts, Reddit; downloading."""
