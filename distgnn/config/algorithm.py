"""When rows travel: `cd-0`, `cd-r` or `0c`, and who updates a vertex."""

import re
from dataclasses import dataclass

from distgnn.config.options.choices import check_choice
from distgnn.errors import InputError

UPDATES = ("owners", "copies")


@dataclass(frozen=True)
class Algorithm:
    """A schedule of exchanges: cd-0 (exact), cd-r (`delay` r), or 0c (`no_exchange` in training)."""

    name: str
    delay: int | None
    no_exchange: bool = False

    @property
    def exact(self) -> bool:
        """Is every exchange synchronous?"""
        return self.delay is None and not self.no_exchange

    @classmethod
    def parse(cls, name: str) -> "Algorithm":
        """From "cd-0", "cd-R" or "0c".

        Raises:
            InputError: for anything else.
        """
        if name == "0c":
            return cls(name, None, no_exchange=True)
        match = re.fullmatch(r"cd-(\d{1,4})", name)
        if match is None:
            raise InputError(
                f"unknown algorithm {name!r}: choose cd-0 (exact), cd-R (R epochs late) or 0c (no exchange)"
            )
        delay = int(match[1])
        return cls(name, delay or None)

    def check_update(self, update: str | None) -> str:
        """Who updates a vertex, "owners" or "copies"; None picks what the algorithm needs.

        Raises:
            InputError: for 0c with update on owners, who would have no rows of other ranks' vertices at all.
        """
        if update is None:
            return "copies" if self.no_exchange else "owners"
        check_choice("update", update, UPDATES)
        if self.no_exchange and update == "owners":
            raise InputError("0c needs update on copies: without exchanges an owner has no rows of other ranks")
        return update
