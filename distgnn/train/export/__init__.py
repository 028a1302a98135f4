"""Trained runs as plain models of other libraries."""
