"""What restarts with fewer ranks attach: their settings, and who is started again."""

from dataclasses import dataclass
from functools import partial

from distgnn.config.extras import Extra, Rule
from distgnn.config.option import option

_setting = partial(option, panel="")
RANKS = "{ranks}"  # in `parts_for`


@dataclass
class ElasticOptions:
    """Which ranks go on after a fault."""

    min_ranks: int | None = _setting(
        None,
        "With --restarts: go on with fewer ranks, down to this number, while a machine stays away or ranks die twice "
        "without a new checkpoint; parts are merged.",
        default_text="as many as there are parts",
        least=1,
    )
    parts_for: str | None = _setting(
        None,
        f"With --restarts: where the partition folder for another number of ranks is, or is written, as parts-{RANKS}.",
        default_text=f"merged/parts-{RANKS} in the run folder",
    )


EXTRA = Extra(
    options={"LaunchConfig": ElasticOptions},
    rules=(
        Rule(
            "--min-ranks and --parts-for say how ranks are started again: they need --restarts",
            lambda restarts, min_ranks, parts_for: not restarts and (min_ranks, parts_for) != (None, None),
        ),
        Rule(
            "parts_for is {parts_for}: expected {path}",
            lambda parts_for: (
                parts_for is not None
                and RANKS not in parts_for
                and {"path": f"a path with {RANKS}, such as parts-{RANKS}"}
            ),
        ),
    ),
    hooks={"regroup": "regroup:Elastic"},
)
