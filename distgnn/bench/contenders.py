"""Who is compared in `distgnn bench`, by name. Needs neither torch nor MPI: the command line checks names first."""

from dataclasses import dataclass

from distgnn.config import UPDATES, WIRES, Algorithm, check_choice
from distgnn.errors import InputError

PAPER = "paper"
EXACT = "cd-0"


@dataclass(frozen=True)
class Contender:
    """One row of the table: "cd-0", "cd-5/int8", "cd-0/copies", "0c" or "paper"."""

    name: str
    algorithm: str
    update: str
    wire: str
    cache_first: bool

    @classmethod
    def parse(cls, name: str) -> "Contender":
        """From its name.

        Raises:
            InputError: for what is no algorithm, update or wire, or does not go together.
        """
        if name == PAPER:
            return cls(PAPER, EXACT, "copies", "float32", False)
        algorithm, *words = name.split("/")
        parsed = Algorithm.parse(algorithm)
        for word in words:
            check_choice("update or wire", word, UPDATES + WIRES)
        update = next((word for word in words if word in UPDATES), None)
        wire = next((word for word in words if word in WIRES), "float32")
        return cls(name, algorithm, parsed.check_update(update), wire, True)


def parse_contenders(text: str) -> list[Contender]:
    """From "cd-0,cd-5,0c"; the exact run and the paper's form are always among them.

    Raises:
        InputError: for an empty list or a name that is no contender.
    """
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise InputError(f"no algorithms in {text!r}: expected names such as cd-0,cd-5,0c")
    return [Contender.parse(name) for name in dict.fromkeys([EXACT, *names, PAPER])]
