"""Who is compared in `distgnn bench`, by name. Needs neither torch nor MPI: the command line checks names first."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from distgnn.config import WIRES, Settings
from distgnn.config.extras import attached
from distgnn.errors import InputError

EXACT = "cd-0"
SUPPRESSED = "suppressed"
VALUES = {  # word before "=" -> option, and what reads its value
    "backward": ("wire_backward", str),
    "late-row-average": ("late_row_average", float),
    "warmup": ("warmup_epochs", int),
}


def of_extras() -> dict[str, dict[str, Any]]:
    """What extras add: options by the name of a contender, or by "/word"."""
    return {name: options for one in attached("contenders") for name, options in one.items()}


@dataclass(frozen=True)
class Contender:
    """An algorithm, and words behind slashes: "cd-5/int8", "cd-5/warmup=20"; or a name that an extra has.

    Words: a wire; backward=WIRE; late-row-average=WEIGHT; warmup=EPOCHS; suppressed (messages of training steps are
    packed and never sent: what the program would cost if the network cost nothing); words of extras. A name of an extra
    takes "/suppressed" and no other word.

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
        known = of_extras()
        if algorithm in known:
            if set(words) - {SUPPRESSED}:
                raise InputError(f"{name}: {algorithm} takes no word but {SUPPRESSED}")
            return cls(name, {"algorithm": EXACT} | known[algorithm], bool(words))
        if not algorithm.startswith("cd-"):
            added = [one for one in known if not one.startswith("/")]
            raise InputError(f"unknown algorithm {algorithm!r}: choose from {', '.join([EXACT, 'cd-R', *added])}")
        found: dict[str, str] = {}
        for word in words:
            kind, equals, value = word.partition("=")
            if not equals or kind not in VALUES:
                kind, value = _kind_of(word, known), word
            if kind in found:
                raise InputError(f"{name}: {found[kind]} and {value} are both given")
            found[kind] = value
        options: dict[str, Any] = {"algorithm": algorithm} | known.get(f"/{found.get('extra')}", {})
        if "wire" in found:
            options["wire"] = found["wire"]
        for kind, (option, read) in VALUES.items():
            if kind in found:
                try:
                    options[option] = read(found[kind])
                except ValueError:
                    raise InputError(f"{name}: {kind}={found[kind]} is not a number") from None
        made = cls(name, options, SUPPRESSED in found)
        made.settings(Settings())
        return made


def _kind_of(word: str, known: Mapping[str, Any]) -> str:
    if word == SUPPRESSED:
        return word
    if word in WIRES or f"/{word}" in known:
        return "wire" if word in WIRES else "extra"
    added = [name.removeprefix("/") for name in known if name.startswith("/")]
    words = [*WIRES, SUPPRESSED, *(f"{name}=…" for name in VALUES), *added]
    raise InputError(f"unknown word {word!r}: choose from {', '.join(words)}")


def parse_contenders(names: list[str]) -> list[Contender]:
    """From names, with the exact run before them. Raises: InputError for what is none, and for no name at all."""
    if not names:
        raise InputError("no algorithms: expected names such as cd-0,cd-5")
    return [Contender.parse(name) for name in dict.fromkeys([EXACT, *names])]


def listed(text: str) -> list[str]:
    """The words of "cd-0, cd-5"."""
    return [word.strip() for word in text.split(",") if word.strip()]
