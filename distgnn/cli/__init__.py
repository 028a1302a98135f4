"""The command line. Each command imports what it needs when it runs."""

from distgnn.cli.main import main

__all__ = ["main"]
