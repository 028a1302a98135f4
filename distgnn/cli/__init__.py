"""The command line. One file per command; each imports what it needs when it runs."""

from distgnn.cli.main import main

__all__ = ["main"]
