"""What cluster batches do not go with."""

import pytest

from distgnn.config import Settings
from distgnn.config.together import check_together
from distgnn.errors import InputError


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"cluster_batches": -1}, "expected at least 0"),
        ({"cluster_batches": 0, "batched_epochs": 2}, "is about cluster batches"),
        ({"task": "link"}, "do not go with task link"),
        ({"inductive": True}, "do not go with --inductive"),
        ({"verify_every": 2}, "do not go with verify_every"),
        ({"algorithm": "cd-2"}, "need algorithm cd-0"),
        ({"wire": "int8"}, "float32 on the wire"),
        ({"model": "gat"}, "gat does not"),
        ({"model": "appnp", "weighted": True}, "appnp with --weighted does not"),
    ],
    ids=lambda value: "" if isinstance(value, str) else "-".join(value),
)
def test_settings_that_do_not_go_together_are_refused(options, says):
    with pytest.raises(InputError, match=says):
        Settings().with_options({"cluster_batches": 3} | options).checked()


def test_options_of_other_extras_are_refused():
    for option, says in (({"optimizer": "natural"}, "optimizer natural"), ({"label_reuse": 0.5}, "label reuse")):
        with pytest.raises(InputError, match=f"do not go with .*{says}"):
            check_together(cluster_batches=2, **option)
