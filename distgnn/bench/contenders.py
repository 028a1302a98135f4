"""Who is compared in `distgnn bench`, by name. Needs neither torch nor MPI: the command line checks names first."""

from dataclasses import dataclass, replace

from distgnn.config import UPDATES, WIRES, Algorithm
from distgnn.config.schedule import Schedule
from distgnn.errors import InputError

PAPER = "paper"
EXACT = "cd-0"
SWITCHES = ("paper-rule", "suppressed")
VALUES = ("late-row-average", "backward", "warmup")


@dataclass(frozen=True)
class Contender:
    """One row of the table: an algorithm, and words behind slashes: "cd-5/int8", "cd-0/copies", "cd-5/warmup=20".

    Words: an update; a wire; backward=WIRE; late-row-average=WEIGHT; warmup=EPOCHS; paper-rule (`--remote-rule paper`,
    with update on copies); suppressed (messages of training steps are packed and never sent: what the program would
    cost if the network cost nothing). "paper" is the paper's whole form (update on copies, nothing kept, every layer
    aggregates before it multiplies); it takes "/suppressed" and no other word.
    """

    name: str
    algorithm: str
    update: str
    papers_form: bool
    schedule: Schedule
    suppressed: bool = False

    @property
    def wire(self) -> str:
        """Width forward, and backward where it is another."""
        forward, backward = self.schedule.wires
        return forward if forward == backward else f"{forward}/{backward}"

    @classmethod
    def parse(cls, name: str) -> "Contender":
        """From its name. Raises: InputError for what is no algorithm or word, or does not go together."""
        if name in (PAPER, f"{PAPER}/suppressed"):
            return cls(name, EXACT, "copies", True, Schedule(), name != PAPER)
        algorithm, *words = name.split("/")
        parsed = Algorithm.parse(algorithm)
        found: dict[str, str] = {}
        for word in words:
            kind, equals, value = word.partition("=")
            if not equals or kind not in VALUES:
                kind, value = _kind_of(word), word
            if kind in found:
                raise InputError(f"{name}: {found[kind]} and {value} are both given")
            found[kind] = value
        paper_rule = "paper-rule" in found
        schedule = Schedule(
            wire=found.get("wire", "float32"),
            wire_backward=found.get("backward"),
            remote_rule="paper" if paper_rule else "held",
            late_row_average=_number(name, found, "late-row-average"),
        )
        if "warmup" in found:
            schedule = replace(schedule, warmup_epochs=int(_number(name, found, "warmup")))
        update = parsed.check_update(found.get("update", "copies" if paper_rule else None))
        schedule.check(parsed, update)
        return cls(name, algorithm, update, False, schedule, "suppressed" in found)


def _kind_of(word: str) -> str:
    for name, choices in {"update": UPDATES, "wire": WIRES}.items():
        if word in choices:
            return name
    if word in SWITCHES:
        return word
    known = [*UPDATES, *WIRES, *SWITCHES, *(f"{name}=…" for name in VALUES)]
    raise InputError(f"unknown word {word!r}: choose from {', '.join(known)}")


def _number(name: str, found: dict[str, str], kind: str) -> float:
    try:
        return float(found.get(kind, 0))
    except ValueError:
        raise InputError(f"{name}: {kind}={found[kind]} is not a number") from None


def parse_contenders(text: str) -> list[Contender]:
    """From "cd-0,cd-5,0c", with the exact run and the paper's form. Raises: InputError for what is no such list."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise InputError(f"no algorithms in {text!r}: expected names such as cd-0,cd-5,0c")
    return [Contender.parse(name) for name in dict.fromkeys([EXACT, *names, PAPER])]
