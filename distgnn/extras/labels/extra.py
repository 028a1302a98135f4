"""What labels beside a model attach: an option of models, what stands around them, and a command."""

from dataclasses import dataclass
from functools import partial

from distgnn.config.extras import Extra, Rule
from distgnn.config.option import check_values, option
from distgnn.errors import InputError

_setting = partial(option, panel="")
_step = partial(option, panel="Options", least=0)


@dataclass
class LabelOptions:
    """Which labels a model is given."""

    label_reuse: float = _setting(
        0.0, "Share of training labels that are input in each epoch; the loss is on the others (0: none)."
    )


@dataclass(frozen=True)
class CorrectSmoothConfig:
    """Steps and alphas of both propagations of Correct and Smooth; the defaults: DGL's example for ogbn-arxiv."""

    correction_steps: int = _step(50, "Steps in which training errors are spread (0: do not correct).")
    correction_alpha: float = _step(0.979, "Share of neighbours in each of them.")
    smoothing_steps: int = _step(50, "Steps in which labels are spread (0: do not smooth).")
    smoothing_alpha: float = _step(0.756, "Share of neighbours in each of them.")
    scale: float | None = _step(None, "Factor of the spread error.", default_text="by its size at each vertex")

    def check(self) -> None:
        """Raise InputError for the first setting that makes no sense."""
        check_values(self)
        for name, most in (("correction_alpha", 1), ("smoothing_alpha", 1), ("scale", 1e30)):
            if (getattr(self, name) or 0) > most:
                raise InputError(f"{name} is {getattr(self, name)}: expected at most {most:g}")


EXTRA = Extra(
    commands={"correct-smooth": "command:correct_smooth"},
    options={"ModelConfig": LabelOptions},
    rules=(
        Rule(
            "label_reuse is {label_reuse}: expected a share from 0 up to, but not including, 1",
            lambda label_reuse: not 0 <= label_reuse < 1,
        ),
        Rule(
            "label_reuse needs classes of vertices: leave it out of task {task}",
            lambda task, label_reuse: task != "node" and label_reuse,
        ),
        Rule(
            "label_reuse needs rows in float32 or wider: choose dtype float32",
            lambda dtype, label_reuse: dtype == "bfloat16" and label_reuse,
        ),
        Rule(
            "a model with label_reuse becomes no other library's: predict with it here",
            lambda exported, label_reuse: exported and label_reuse,
        ),
    ),
    hooks={"model": "label_reuse:around"},
)
