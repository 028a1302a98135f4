"""What a run is made of besides its model, its exchange schedule and its training: algorithm, dtype, number of runs."""

from dataclasses import dataclass
from typing import Any

from distgnn.config.algorithm import UPDATES, Algorithm
from distgnn.config.options.choices import DTYPES, check_choice
from distgnn.config.options.option import check_choices, documented, option
from distgnn.config.steps.feat_norm import FEAT_NORMS, parse_feat_norm
from distgnn.errors import InputError

EXCHANGE, COMPUTATION = "Algorithm and exchange", "Computation"
PRESETS: dict[str, dict[str, Any]] = {"distgnn": {"update": "copies", "cache_first": False, "transform_first": False}}


@documented
@dataclass(frozen=True)
class RunConfig:
    """Which algorithm, who updates a vertex, the dtype of rows, and with how many seeds."""

    algorithm: str = option("cd-0", "cd-0: exact. cd-R: rows count R epochs late. 0c: no exchange.", panel=EXCHANGE)
    update: str | None = option(
        None,
        "Who computes a vertex: its owner, or every rank with a copy of it (the paper's form).",
        panel=EXCHANGE,
        choices=UPDATES,
        default_text="owners; 0c: copies",
    )
    dtype: str = option(
        "float32",
        "Dtype of feature rows; with bfloat16, weights and sums are float32.",
        panel=COMPUTATION,
        choices=DTYPES,
    )
    cache_first: bool = option(True, "Keep the aggregation of the input features.", panel=COMPUTATION)
    transform_first: bool = option(
        True, "Multiply by the weights before aggregating where a layer narrows.", panel=COMPUTATION
    )
    feat_norm: str = option(
        "none",
        "What is done to features, with commas between steps: center and standardize columns, scale rows to norm 1 "
        f"({', '.join(FEAT_NORMS)}); sparse features stay sparse.",
        panel=COMPUTATION,
    )
    runs: int = option(
        1, "Number of seeds to train with; the report has mean and standard deviation.", panel="Training"
    )

    def check(self) -> tuple[Algorithm, str]:
        """The parsed algorithm and who updates a vertex.

        Raises: InputError for the first setting that no run can have.
        """
        algorithm = Algorithm.parse(self.algorithm)
        update = algorithm.check_update(self.update)
        check_choices(self)
        parse_feat_norm(self.feat_norm)
        if self.runs < 1:
            raise InputError(f"runs is {self.runs}: expected at least 1")
        return algorithm, update


def preset_options(preset: str) -> dict[str, Any]:
    """The fields of RunConfig that `--preset` fixes, by name. Raises: InputError for an unknown preset."""
    check_choice("preset", preset, tuple(PRESETS))
    return PRESETS[preset]
