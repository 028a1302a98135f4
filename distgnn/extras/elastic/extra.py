"""What restarts with fewer ranks attach: their setting, and who is started again."""

from dataclasses import dataclass

from distgnn.config.extras import Extra, Rule
from distgnn.config.option import option


@dataclass
class ElasticOptions:
    """Which ranks go on after a fault."""

    min_ranks: int | None = option(
        None,
        "With --restarts: go on with fewer ranks, down to this number, while a machine stays away or ranks die twice "
        "without a new checkpoint; parts are merged.",
        panel="",
        default_text="as many as there are parts",
        least=1,
    )


EXTRA = Extra(
    options={"LaunchConfig": ElasticOptions},
    rules=(
        Rule(
            "--min-ranks says how ranks are started again: it needs --restarts",
            lambda restarts, min_ranks: not restarts and min_ranks is not None,
        ),
    ),
    hooks={"regroup": "regroup:Elastic"},
)
