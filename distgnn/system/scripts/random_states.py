"""One state of random numbers to begin with: the state of rank 0's generators on all ranks."""

import random
import sys
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
