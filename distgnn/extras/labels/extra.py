"""What labels beside a model attach: an option of models, what stands around them, and a command."""

from dataclasses import dataclass
from functools import partial

from distgnn.config.extras import Extra, Rule
from distgnn.config.option import option

_setting = partial(option, panel="")


@dataclass
class LabelOptions:
    """Which labels a model is given."""

    label_reuse: float = _setting(
        0.0, "Share of training labels that are input in each epoch; the loss is on the others (0: none)."
    )


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
