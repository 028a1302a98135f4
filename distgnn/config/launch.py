"""How ranks are started by the program itself."""

from dataclasses import dataclass

from distgnn.config.option import documented, option
from distgnn.errors import InputError

CHECKPOINT_EVERY = 10  # epochs, where ranks may be started again and nothing else is said


@documented
@dataclass(frozen=True)
class LaunchConfig:
    """How ranks are started, and started again."""

    restarts: int = option(
        0,
        "How often ranks are started again, from the newest checkpoint, after a rank or a machine has died or hung. "
        f"A checkpoint is then written every {CHECKPOINT_EVERY} epochs unless --checkpoint-every says otherwise.",
        panel="Ranks and memory",
    )

    def check(self) -> None:
        """Raise InputError for a setting that makes no sense."""
        if self.restarts < 0:
            raise InputError(f"restarts is {self.restarts}: expected at least 0")
