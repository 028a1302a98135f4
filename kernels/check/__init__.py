"""Slow reference versions of every kernel, and the cases on which the two are compared."""
