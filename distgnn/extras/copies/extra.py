"""What update on copies attaches: a class of graphs with its setting, and what it does not go with."""

from dataclasses import dataclass

from distgnn.config.extras import Extra, Rule
from distgnn.config.option import option

HELD, PAPER, NOTHING = RULES = ("held", "paper", "0c")


@dataclass
class CopyOptions:
    """Who computes a vertex, and which remote sums count."""

    copy_updates: str | None = option(
        None,
        "Every copy of a vertex is computed, as in the DistGNN paper; late rows stay in use (held) or count once, "
        "forward only (paper), or training sends nothing (0c).",
        panel="",
        choices=RULES,
        default_text="its owner",
    )


LINES = (
    ("{by_arc} works arc by arc, which --copy-updates does not: leave it out, or choose model sage, gcn or gin",
     lambda by_arc, copy_updates: by_arc and copy_updates),
    ("--copy-updates 0c sends nothing in training: leave --algorithm, --wire and warmup_epochs out",
     lambda copy_updates, algorithm, wire, wire_backward, warmup_epochs:
         copy_updates == NOTHING
         and (not algorithm.exact or {wire, wire_backward} - {"float32", None} or warmup_epochs != 1)),
    ("--copy-updates paper is about late rows: {algorithm.name} has none; choose cd-R, R >= 1",
     lambda copy_updates, algorithm: copy_updates == PAPER and algorithm.exact),
    ("late_row_average is about held rows: --copy-updates paper holds none",
     lambda copy_updates, late_row_average: copy_updates == PAPER and late_row_average),
    ("--copy-updates paper exchanges no gradients: leave wire_backward out",
     lambda copy_updates, wire, wire_backward: copy_updates == PAPER and wire_backward not in (None, wire)),
    ("--remat repeats exchanges: leave --remat or --copy-updates 0c out",
     lambda copy_updates, remat: copy_updates == NOTHING and remat),
)  # fmt: skip

CONTENDERS = {  # of `distgnn bench`: options by name, and by "/word" behind an algorithm
    "0c": {"copy_updates": NOTHING},
    "paper": {"copy_updates": HELD, "cache_first": False, "transform_first": False},  # its whole form
    "/copies": {"copy_updates": HELD},
    "/paper-rule": {"copy_updates": PAPER},
}

EXTRA = Extra(
    options={"Schedule": CopyOptions},
    rules=tuple(Rule(*line) for line in LINES),
    hooks={"graph": "graph:CopyGraph", "contenders": "extra:CONTENDERS"},
    all_rows="copy_updates",
)
