"""Cutting within a given memory: phases on disk."""
