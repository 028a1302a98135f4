"""What a run is made of besides model, schedule and training: algorithm, dtype, seeds; and how ranks are started."""

import os
from dataclasses import dataclass

from distgnn.config.extras import extended
from distgnn.config.option import DTYPES, check_choice, check_values, documented, option, options_of
from distgnn.config.schedule import Algorithm, Schedule
from distgnn.config.together import check_together
from distgnn.errors import InputError
from distgnn.system.processor import users_threads

FEAT_NORMS = ("none", "center", "standardize", "row-l2")
OF_COLUMNS = ("center", "standardize")  # from statistics over vertices
CHECKPOINT_EVERY = 10  # epochs, where ranks may be started again and nothing else is said
EXCHANGE, COMPUTATION = "Algorithm and exchange", "Computation"


@documented
@dataclass(frozen=True)
@extended
class RunConfig:
    """Which algorithm, the dtype of rows, and with how many seeds."""

    algorithm: str = option("cd-0", "cd-0: exact. cd-R: rows count R epochs late.", panel=EXCHANGE)
    dtype: str = option(
        "float32",
        "Dtype of feature rows; with bfloat16, weights and sums are float32.",
        panel=COMPUTATION,
        choices=DTYPES,
    )
    cache_first: bool = option(True, "Keep the aggregation of the input features.", panel="")
    transform_first: bool = option(True, "Multiply by the weights before aggregating where a layer narrows.", panel="")
    feat_norm: str = option(
        "none",
        "What is done to features, with commas between steps: center and standardize columns, scale rows to norm 1 "
        f"({', '.join(FEAT_NORMS)}); sparse features stay sparse.",
        panel=COMPUTATION,
    )
    runs: int = option(
        1, "Number of seeds to train with; the report has mean and standard deviation.", panel="Training", least=1
    )

    def check(self) -> Algorithm:
        """The parsed algorithm. Raises: InputError for a setting that no run can have."""
        algorithm = Algorithm.parse(self.algorithm)
        check_values(self)
        parse_feat_norm(self.feat_norm)
        return algorithm


@documented
@dataclass(frozen=True)
@extended
class LaunchConfig:
    """How ranks are started, and started again."""

    restarts: int = option(
        0,
        "How often ranks are started again, from the newest checkpoint, after a rank or a machine has died or hung. "
        f"A checkpoint is then written every {CHECKPOINT_EVERY} epochs unless --checkpoint-every says otherwise.",
        panel="Ranks and memory",
        least=0,
    )

    def check(self, schedule: Schedule | None = None) -> None:
        """Raise InputError for a setting that makes no sense, alone or beside a schedule."""
        check_values(self)
        check_together(**options_of(self), **options_of(schedule or Schedule()))


def parse_feat_norm(text: str) -> tuple[str, ...]:
    """The steps in a text such as "row-l2,center" or "row-l2+center", in their order; none for "none"."""
    steps = [name.strip() for name in text.replace("+", ",").split(",")]
    for name in steps:
        check_choice("feat_norm", name, FEAT_NORMS)
    if steps == ["none"]:
        return ()
    if "none" in steps or len(set(steps)) < len(steps):
        raise InputError(f"feat_norm is {text}: expected none, or different steps")
    if set(OF_COLUMNS) <= set(steps):
        raise InputError(f"feat_norm is {text}: standardize centers too, leave center out")
    return tuple(steps)


def num_threads() -> int:
    """Threads of this process: DISTGNN_NUM_THREADS, else OMP_NUM_THREADS, else the cores it may run on.

    Raises: InputError where the variable is not a positive number.
    """
    named = users_threads()
    if named:
        return named
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
