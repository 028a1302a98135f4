"""What a rank of `distgnn run` does: a user's script, as `python SCRIPT …` or `python -m MODULE …` runs it.

    python run_script.py [-m] SCRIPT ARGUMENTS …

The first thing is `import distgnn`, so that functions on files are replaced before a library takes them.

One state of random numbers to begin with: the state of rank 0's generators on all ranks.
"""

import os
import random
import runpy
import sys
from types import TracebackType
from typing import Any


def share_random_states(comm: Any) -> None:
    """Give all ranks rank 0's states of `random`, and of `numpy.random` and torch where they are loaded.

    Collective: yes. Generators of a script's own (`np.random.default_rng()`, `secrets`) have no common seed.
    """
    if comm.size == 1:
        return
    numpy, torch = (sys.modules.get(name) for name in ("numpy", "torch"))
    mine: dict[str, Any] = {"random": random.getstate()}
    if numpy is not None:
        mine["numpy"] = numpy.random.get_state()
    if torch is not None:
        mine["torch"] = torch.get_rng_state().numpy().tobytes()
    states = comm.bcast(mine, root=0)
    random.setstate(states["random"])
    if numpy is not None and "numpy" in states:
        numpy.random.set_state(states["numpy"])
    if torch is not None and "torch" in states:
        torch.set_rng_state(torch.frombuffer(bytearray(states["torch"]), dtype=torch.uint8))


def texts_hash_alike(comm: Any) -> bool:
    """Have sets of texts the same order on all ranks? Collective: yes."""
    return len(set(comm.allgather(hash("distgnn")))) == 1


def main() -> None:
    module = sys.argv[1] == "-m"
    del sys.argv[: 2 if module else 1]
    if not getattr(sys.flags, "safe_path", False):
        sys.path[0] = os.getcwd() if module else os.path.dirname(os.path.realpath(sys.argv[0]))

    import distgnn  # noqa: F401
    from distgnn.errors import users_trace
    from distgnn.system.output import NoInput, show_held

    sys.stdin = NoInput()
    try:
        if module:
            runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(sys.argv[0], run_name="__main__")
    except SystemExit as error:
        if error.code:
            show_held()
        raise
    except Exception as error:  # shown as Python does, without the lines of this file
        if not getattr(error, "agreed", False):
            show_held()
        trace = users_trace(error, _of_the_script(error.__traceback__))
        sys.excepthook(type(error), error.with_traceback(trace), trace)
        sys.exit(1)


def _of_the_script(trace: TracebackType | None) -> TracebackType | None:
    while trace is not None and trace.tb_frame.f_code.co_filename in (__file__, runpy.__file__, "<frozen runpy>"):
        trace = trace.tb_next
    return trace


if __name__ == "__main__":
    main()
