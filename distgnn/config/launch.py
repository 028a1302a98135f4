"""How ranks are started by the program itself."""

from dataclasses import dataclass

from distgnn.config.options.option import documented, option
from distgnn.errors import InputError

CHECKPOINT_EVERY = 10  # epochs, where ranks may be started again and nothing else is said
RANKS = "{ranks}"  # in `parts_for`


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
    min_ranks: int | None = option(
        None,
        "With --restarts: go on with fewer ranks, down to so many, while a machine stays away or ranks die twice "
        "without a new checkpoint; parts are merged.",
        panel="Ranks and memory",
        default_text="as many as there are parts",
    )
    parts_for: str | None = option(
        None,
        f"With --restarts: where the partition folder for another number of ranks is, or is written, as parts-{RANKS}.",
        panel="Ranks and memory",
        default_text=f"merged/parts-{RANKS} in the run folder",
    )

    def check(self, columns: int = 1) -> None:
        """Raise InputError for a setting that makes no sense, alone or beside several ranks a part."""
        if self.restarts < 0:
            raise InputError(f"restarts is {self.restarts}: expected at least 0")
        if self.min_ranks is not None and self.min_ranks < 1:
            raise InputError(f"min_ranks is {self.min_ranks}: expected at least 1")
        if self.parts_for is not None and RANKS not in self.parts_for:
            raise InputError(f"parts_for is {self.parts_for!r}: expected a path with {RANKS}, such as parts-{RANKS}")
        if not self.restarts and (self.min_ranks is not None or self.parts_for is not None):
            raise InputError("--min-ranks and --parts-for say how ranks are started again: they need --restarts")
        if columns > 1 and (self.min_ranks is not None or self.parts_for is not None):
            raise InputError(
                "with --columns ranks are started again as many as before: leave --min-ranks and --parts-for out"
            )
