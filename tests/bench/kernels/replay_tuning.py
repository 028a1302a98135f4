"""The tuner on recorded machines: a choice that is wrong by 10 % on any of them (blocks: 18 %) ends this with 1.

    python tests/bench/kernels/replay_tuning.py                                  # all files of recorded/
    python tests/bench/kernels/replay_tuning.py --record recorded/NAME.json      # measure this machine, 9 times
    python tests/bench/kernels/replay_tuning.py --mend WRONG.json                # what the tuner makes of these choices

A file holds for each question of `distgnn.kernels.graph.tuner` the seconds of each candidate, once for each round. The
tuner sees one round at a time; the truth is the median of all.
"""

import argparse
import json
import statistics
import sys
from pathlib import Path
from typing import Any

from distgnn.kernels.graph import tuner
from distgnn.kernels.graph.tuner import BLOCKS_WORTH, DEFAULTS, WORTH, Question, measured, tune
from distgnn.kernels.runtime.tuning import Tuning

RECORDED = Path(__file__).parent / "recorded"
ROUNDS, WRONG = 9, 1.10
OTHER_WORTH = {"blocked": BLOCKS_WORTH}  # of the default's time that another choice must beat


def worth(field: str) -> float:
    """As the tuner has it."""
    return OTHER_WORTH.get(field, WORTH)


def choices(times: dict[str, Any], turn: int, start: Tuning = DEFAULTS) -> Tuning:
    """What the tuner chooses from one round of a machine; the round after it is what it measures a second time."""
    asked: list[str] = []

    def recorded(question: Question, _: Tuning) -> dict[int, float]:
        rounds = times[question.field]
        place = turn + (question.field in asked)
        asked.append(question.field)
        return {
            value: rounds[str(value)][place % len(rounds[str(value)])]
            for value in question.values
            if str(value) in rounds
        }

    return tune(
        [Question(name, tuple(map(int, rounds)), lambda: None, worth(name)) for name, rounds in times.items()],
        recorded,
        start,
    )


def losses(times: dict[str, Any], found: Tuning) -> dict[str, float]:
    """How many times as long as the best candidate's the chosen ones take, by question."""
    lost = {}
    for name, rounds in times.items():
        true = {int(value): statistics.median(seconds) for value, seconds in rounds.items()}
        lost[name] = true.get(getattr(found, name), max(true.values())) / min(true.values())
    return lost


def wrong_choices(times: dict[str, Any], found: Tuning) -> dict[str, float]:
    """The losses that are more than the tuner may leave, rounded."""
    lost = losses(times, found)
    return {name: round(share, 2) for name, share in lost.items() if share > max(WRONG, 1 / worth(name))}


def questions() -> list[Question]:
    """All of this machine."""
    from distgnn.graph.tuning import product_questions

    return [*product_questions(), *tuner.kernel_questions()]


def record(path: Path) -> None:
    """Measure this machine, with more turns than the tuner takes: other work shall not be recorded."""
    tuner.SECONDS, tuner.LEAST_TURNS, tuner.TURNS = 1.0, 6, 40
    from distgnn.graph.tuning import machine

    times: dict[str, dict[str, list[float]]] = {}
    for turn in range(ROUNDS + 1):  # the first one compiles
        for question in questions():
            for value, seconds in measured(question, DEFAULTS).items():
                if turn:
                    times.setdefault(question.field, {}).setdefault(str(value), []).append(round(seconds, 6))
    path.write_text(json.dumps({"machine": machine(), "times": times}) + "\n")


def main() -> int:
    """A line for each machine; 1 where a choice was wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--record", type=Path)
    parser.add_argument("--mend", type=Path, help="a file for DISTGNN_TUNING; prints another")
    options = parser.parse_args()
    if options.record:
        record(options.record)
        return 0
    if options.mend:
        print(json.dumps(tune(questions(), measured, Tuning(**json.loads(options.mend.read_text())))._asdict()))
        return 0
    wrong = 0
    for path in sorted(RECORDED.glob("*.json")):
        kept = json.loads(path.read_text())
        for turn in range(max(len(seconds) for rounds in kept["times"].values() for seconds in rounds.values())):
            found = choices(kept["times"], turn)
            bad = wrong_choices(kept["times"], found)
            wrong += bool(bad)
            print(f"{path.stem}, round {turn}: {found}" + (f" WRONG: {bad}" if bad else ""))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
