"""The same program on every machine."""

from typing import Any

from distgnn.comm import check_same
from distgnn.train.run.machine import versions


def check_program(comm: Any) -> None:
    """Refuse ranks with other versions of the program, its libraries or the MPI library. Collective.

    Raises: RunError on every rank with the first difference.
    """
    check_same(comm, versions(), "install the same versions on every machine")
