"""Exact borders between two parts: a minimum vertex separator by maximum flow."""
