"""What training by nodes does not go with."""

import pytest

from distgnn.config import Settings
from distgnn.errors import InputError


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"algorithm": "cd-2"}, "--ranks-per-node is for exact rows"),
        ({"wire": "int8"}, "--ranks-per-node is for exact rows"),
        ({"offload": "DIR"}, "rows of --offload travel in pieces"),
    ],
)
def test_what_goes_by_plain_messages_only_is_refused(options, says):
    with pytest.raises(InputError, match=says):
        Settings().with_options({"ranks_per_node": 2} | options).checked()
