"""Stacks of convolutions, and how they are made from settings."""
