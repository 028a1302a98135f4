"""States of other people's objects become JSON and tensors, and come back the same."""

import json
import math
from collections import Counter

import numpy as np
import pytest
import torch

from distgnn.errors import InputError
from distgnn.train.checkpoint.objects import flatten, unflatten


def test_they_come_back_as_they_were():
    state = {
        "text": "a",
        7: (None, True, 1.5, math.inf, -math.inf, [0.1, {"x": {2, 3}}]),
        "milestones": Counter({3: 1}),
        "tensor": torch.arange(3, dtype=torch.bfloat16),
        "array": np.arange(4.0),
        "number": np.float32(0.5),
        "dict": {"dict": {"tensor": "state.tensor"}},
    }
    tensors: dict[str, torch.Tensor] = {}
    stored = json.loads(json.dumps(flatten(state, "state", tensors), allow_nan=False))
    back = unflatten(stored, tensors)
    assert list(back) == list(state)
    for name in ("text", 7, "milestones", "number", "dict"):
        assert back[name] == state[name] and type(back[name]) in (type(state[name]), float)
    assert torch.equal(back["tensor"], state["tensor"]) and back["tensor"].dtype == torch.bfloat16
    np.testing.assert_array_equal(back["array"], state["array"])
    assert back["tensor"].data_ptr() != state["tensor"].data_ptr()


@pytest.mark.parametrize("value", [len, object(), 1j, {(1, 2): 3}, {None: 1}])
def test_what_cannot_be_stored_is_named(value):
    with pytest.raises(InputError, match=r"state\.a\.0 is of type \w+: a checkpoint holds"):
        flatten({"a": [value]}, "state", {})


@pytest.mark.parametrize(
    "stored", [{}, {"exec": "x"}, {"tensor": "gone"}, {"dict": [1]}, {"float": "x"}, {"a": 1, "b": 2}]
)
def test_what_is_damaged_is_an_error(stored):
    with pytest.raises((KeyError, TypeError, ValueError)):
        unflatten(stored, {})
