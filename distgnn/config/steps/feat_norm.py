"""What is done to input features when they are loaded: names of its steps."""

from distgnn.config.options.choices import check_choice
from distgnn.errors import InputError

FEAT_NORMS = ("none", "center", "standardize", "row-l2")
OF_COLUMNS = ("center", "standardize")  # from statistics over vertices


def parse_feat_norm(text: str) -> tuple[str, ...]:
    """The steps in a text such as "row-l2,center" or "row-l2+center", in their order; none for "none".

    Raises: InputError for an unknown step, one that is there twice, and two that work on columns.
    """
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
