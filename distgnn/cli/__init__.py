"""Floor 8: the command line. One file per command; each imports what it needs when it runs."""

from typing import NoReturn

from distgnn.cli.main import main
from distgnn.system.quick_start import end_process

__all__ = ["main", "program"]


def program() -> NoReturn:
    """The program as it is installed: run the command line and end the process with its exit code."""
    end_process(main())
