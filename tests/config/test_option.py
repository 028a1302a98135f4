"""Values by the names of settings: words of `--set`, kinds of values, and the name that was meant."""

import pytest

from distgnn.config import ModelConfig, RunConfig, TrainConfig
from distgnn.config.option import read_settings_of_words, wrong_kinds
from distgnn.errors import InputError


def test_words_become_values_of_their_kind():
    words = ["cache_first=false", "clip_grad=2", "loss=mae", "num_negatives=3"]
    found = read_settings_of_words(words, (RunConfig, TrainConfig))
    assert found == {"cache_first": False, "clip_grad": 2.0, "loss": "mae", "num_negatives": 3}


@pytest.mark.parametrize(
    ("word", "says"),
    [
        ("clip_grad", "--set clip_grad: expected NAME=VALUE"),
        ("clip_grd=1", "did you mean clip_grad?"),
        ("weight_decay=8", "--set weight_decay=8: this is an option of its own, --weight-decay"),
        ("clip_grad=much", "--set clip_grad=much: expected a number"),
        ("num_negatives=1.5", "--set num_negatives=1.5: expected a whole number"),
        ("cache_first=1", "expected True or False"),
    ],
)
def test_words_that_are_none(word, says):
    with pytest.raises(InputError, match=says):
        read_settings_of_words([word], (RunConfig, TrainConfig))


def test_values_of_another_kind_are_named():
    values = {"stem": 1, "num_bases": True, "dropout": 1, "decoder": None, "no_such": object()}
    assert list(wrong_kinds(ModelConfig(), values)) == [("stem", "a text"), ("num_bases", "a whole number")]
