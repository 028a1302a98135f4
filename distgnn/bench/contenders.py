"""Who is compared in `distgnn bench`, by name. Needs neither torch nor MPI: the command line checks names first."""

from dataclasses import dataclass
from typing import Any

from distgnn.config import UPDATES, WIRES, Settings
from distgnn.config.run import preset_options
from distgnn.errors import InputError

PAPER = "paper"
EXACT = "cd-0"
SUPPRESSED = "suppressed"
SWITCHES = ("paper-rule", SUPPRESSED)
VALUES = {"late-row-average": float, "backward": str, "warmup": int}


@dataclass(frozen=True)
class Contender:
    """An algorithm, and words behind slashes: "cd-5/int8", "cd-0/copies", "cd-5/warmup=20".

    Words: an update; a wire; backward=WIRE; late-row-average=WEIGHT; warmup=EPOCHS; paper-rule (`--remote-rule paper`,
    with update on copies); suppressed (messages of training steps are packed and never sent: what the program would
    cost if the network cost nothing). "paper" is the paper's whole form (update on copies, nothing kept, every layer
    aggregates before it multiplies); it takes "/suppressed" and no other word.

    Args: options: of `distgnn train`, by name.
    """

    name: str
    options: dict[str, Any]
    suppressed: bool = False

    def settings(self, base: Settings) -> Settings:
        """These settings, trained as the contender says. Raises: InputError for what does not go together."""
        return base.with_options(self.options).checked()

    @classmethod
    def parse(cls, name: str) -> "Contender":
        """From its name. Raises: InputError for what is no algorithm or word, or does not go together."""
        algorithm, *words = name.split("/")
        if algorithm == PAPER and set(words) <= {SUPPRESSED}:
            return cls(name, {"algorithm": EXACT} | preset_options("distgnn"), bool(words))
        found: dict[str, str] = {}
        for word in words:
            kind, equals, value = word.partition("=")
            if not equals or kind not in VALUES:
                kind, value = _kind_of(word), word
            if kind in found:
                raise InputError(f"{name}: {found[kind]} and {value} are both given")
            found[kind] = value
        options: dict[str, Any] = {"algorithm": algorithm, "update": found.get("update")}
        if "paper-rule" in found:
            options |= {"remote_rule": "paper", "update": found.get("update", "copies")}
        names = {"wire": "wire", "backward": "wire_backward", "late-row-average": "late_row_average"}
        for kind, option in (names | {"warmup": "warmup_epochs"}).items():
            if kind in found:
                options[option] = _value(name, found, kind)
        made = cls(name, options, SUPPRESSED in found)
        made.settings(Settings())
        return made


def _kind_of(word: str) -> str:
    for name, choices in {"update": UPDATES, "wire": WIRES}.items():
        if word in choices:
            return name
    if word in SWITCHES:
        return word
    known = [*UPDATES, *WIRES, *SWITCHES, *(f"{name}=…" for name in VALUES)]
    raise InputError(f"unknown word {word!r}: choose from {', '.join(known)}")


def _value(name: str, found: dict[str, str], kind: str) -> Any:
    try:
        return VALUES.get(kind, str)(found[kind])
    except ValueError:
        raise InputError(f"{name}: {kind}={found[kind]} is not a number") from None


def parse_contenders(names: list[str]) -> list[Contender]:
    """From names, with the exact run before them. Raises: InputError for what is none, and for no name at all."""
    if not names:
        raise InputError("no algorithms: expected names such as cd-0,cd-5,0c")
    return [Contender.parse(name) for name in dict.fromkeys([EXACT, *names])]


def listed(text: str) -> list[str]:
    """The words of "cd-0, cd-5,0c"."""
    return [word.strip() for word in text.split(",") if word.strip()]
