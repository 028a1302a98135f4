"""Which of the choices to take: the fewest ranks and the most exact algorithm that do what is asked."""

from typing import Any

from distgnn.config import Settings
from distgnn.errors import InputError, RunError
from distgnn.extras.replay.network import Network
from distgnn.extras.replay.planning.epoch_estimate import Choice, Estimate, Rank, estimate
from distgnn.extras.replay.planning.graph_sizes import GraphSizes
from distgnn.system.units import human_bytes, human_seconds

# From exact to what changes training most: rounded rows, late rows, late and rounded rows. 0c is shown, never advised.
SCHEDULES = (("cd-0", "float32"), ("cd-0", "bfloat16"), ("cd-5", "float32"), ("cd-5", "int8"))
SHOWN_ONLY = (("0c", "float32"),)
MOST_RANKS = 1 << 16
WORTH = 0.5  # efficiency, below which more ranks mostly wait


def parse_ranks(text: str) -> list[int]:
    """Numbers of ranks of "1,2,4" or "1,2,4,…,128" (also "..."): doubled, or added to, up to the last.

    Raises: InputError.
    """
    words = [word.strip() for word in text.replace("...", "…").split(",") if word.strip()]
    ranks: list[int] = []
    for place, word in enumerate(words):
        if word == "…":
            if len(ranks) < 2 or place + 2 != len(words) or not words[-1].isdigit():
                raise InputError(f"ranks {text!r}: expected two numbers before … and one behind it, as 1,2,…,128")
            doubles = ranks[-1] == 2 * ranks[-2]
            step = ranks[-1] - ranks[-2]
            if step <= 0:
                raise InputError(f"ranks {text!r}: expected numbers that grow")
            while (following := 2 * ranks[-1] if doubles else ranks[-1] + step) < min(int(words[-1]), MOST_RANKS):
                ranks.append(following)
        elif not word.isascii() or not word.isdigit() or not 1 <= int(word) <= MOST_RANKS:
            raise InputError(f"ranks {text!r}: expected whole numbers from 1 to {MOST_RANKS}, as 1,2,…,128")
        else:
            ranks.append(int(word))
    if not ranks:
        raise InputError("no ranks are given: expected whole numbers, as 1,2,…,128")
    return sorted(set(ranks))


def all_estimates(
    sizes: GraphSizes, ranks: list[int], settings: Settings, rank: Rank, network: Network
) -> list[Estimate]:
    """Of every number of ranks with every schedule, exact first."""
    found = []
    for count in ranks:
        for schedule in (*SCHEDULES, *SHOWN_ONLY) if count > 1 else SCHEDULES[:1]:
            if schedule in SHOWN_ONLY and settings.model.by_arc:
                continue  # 0c is update on copies
            if settings.model.remat and schedule != SCHEDULES[0]:
                continue  # what is made again is exchanged again
            found.append(estimate(sizes, Choice(count, *schedule, settings.run.dtype), settings, rank, network))
    return found


def choose(found: list[Estimate], memory: int | None, target_seconds: float | None) -> Estimate:
    """The advised one: with a target the fewest ranks that reach it, with a memory the fewest that fit.

    With neither, the most ranks that are worth it.

    Raises: RunError where nothing fits the memory or reaches the target, with what would.
    """
    fits = [one for one in found if memory is None or one.memory_bytes <= memory]
    advised = [one for one in fits if one.choice.algorithm != "0c"]
    if not advised:
        least = min(found, key=lambda one: one.memory_bytes)
        raise RunError(
            f"nothing fits: {least.choice.ranks} ranks need {human_bytes(least.memory_bytes)} each, "
            f"{human_bytes(memory or 0)} are there: take more ranks, --dtype bfloat16, --remat, "
            "--offload or a smaller --hidden-feats"
        )
    if target_seconds is not None:
        reached = [one for one in advised if one.epoch_seconds <= target_seconds]
        if not reached:
            best = min(advised, key=lambda one: one.epoch_seconds)
            raise RunError(
                f"no choice reaches {human_seconds(target_seconds)}: the best is {human_seconds(best.epoch_seconds)} "
                f"with {best.choice.ranks} ranks, {best.choice.algorithm}, {best.choice.wire} on the wire"
            )
        return reached[0]
    if memory is not None:
        return min(advised, key=lambda one: one.choice.ranks)
    worth = [one for one in advised if one.efficiency >= WORTH]
    if not worth:
        return min(advised, key=lambda one: one.epoch_seconds)
    most = max(one.choice.ranks for one in worth)
    return next(one for one in worth if one.choice.ranks == most)


def commands(one: Estimate, source: str, settings: Settings, network: Network, is_parts: bool) -> list[str]:
    choice, model = one.choice, settings.model
    per_node = network.ranks_per_node
    parts = f"{choice.ranks // per_node}x{per_node}" if per_node > 1 and choice.ranks % per_node == 0 else choice.ranks
    cut = f"distgnn repartition {source}" if is_parts else f"distgnn partition {source}"
    folder = f"parts-{choice.ranks}/"
    words: list[Any] = ["distgnn train", folder, "--model", model.name, "--num-layers", model.num_layers]
    words += ["--hidden-feats", model.hidden_feats, *([] if model.norm == "layer" else ["--norm", model.norm])]
    words += ["--remat"] if model.remat else []
    words += ["--offload", settings.train.offload] if settings.train.offload else []
    if choice.ranks > 1:
        words += ["--algorithm", choice.algorithm, "--wire", choice.wire]
    words += ["--dtype", choice.dtype]
    out = f"{cut} --parts {choice.ranks if is_parts else parts} --method cmr --out {folder}"
    return [out, " ".join(map(str, words))]
