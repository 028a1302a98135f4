"""The first instant of a rank that the launcher started: the kernel is asked to end it when its parent dies.

    python -I -S parent_death.py PROGRAM ARGUMENTS …

The parent is the proxy that `mpiexec` has on the rank's machine (of Open MPI: its daemon). Without a proxy nobody would
end the rank: it trained on, unsupervised. The request outlives `execve`; it reaches a stopped process, and one that
holds the interpreter's lock. Ranks that a user's own `mpiexec` or srun starts do not come here.

Nothing of ours is imported: this runs before any package can be found, in some 20 ms.
"""

import ctypes
import os
import signal
import sys
from collections.abc import Callable

PR_SET_PDEATHSIG = 1


def die_with_parent(number: int = signal.SIGTERM) -> Callable[[], object] | None:
    """What has the kernel send its process a signal when the parent dies, however it dies; None where it cannot."""
    prctl = getattr(ctypes.CDLL(None), "prctl", None)  # Linux
    return None if prctl is None else lambda: prctl(PR_SET_PDEATHSIG, int(number))


def main() -> None:
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # Python ignores it, and programs inherit that
    if ask := die_with_parent(signal.SIGKILL):
        ask()
    if os.getppid() == 1:  # it died before it was asked
        sys.exit(1)
    try:
        os.execvp(sys.argv[1], sys.argv[1:])
    except OSError as error:
        sys.exit(f"distgnn: error: {sys.argv[1]} could not be started: {error.strerror}")


if __name__ == "__main__":
    main()
