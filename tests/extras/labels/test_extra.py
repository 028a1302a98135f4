"""Settings of label reuse, and of Correct and Smooth: what makes no sense, and what does not go together."""

import pytest

from distgnn.config import ModelConfig, Settings
from distgnn.errors import InputError
from distgnn.extras.labels.extra import CorrectSmoothConfig


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"label_reuse": -0.1}, "label_reuse is -0.1"),
        ({"label_reuse": 1.0}, "label_reuse is 1.0"),
        ({"task": "link"}, "label_reuse needs classes of vertices"),
        ({"dtype": "bfloat16"}, "float32 or wider"),
    ],
    ids=lambda value: "" if isinstance(value, str) else "-".join(value),
)
def test_settings_that_do_not_go_together_are_refused(options, says):
    with pytest.raises(InputError, match=says):
        Settings().with_options({"label_reuse": 0.5} | options).checked()


def test_labels_are_dense_columns_beside_features():
    assert ModelConfig("sage").takes_sparse_feats and not ModelConfig("sage", label_reuse=0.5).takes_sparse_feats


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"correction_steps": -1}, "correction_steps is -1"),
        ({"smoothing_alpha": 1.5}, "smoothing_alpha is 1.5"),
        ({"scale": -1.0}, "scale is -1.0"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        CorrectSmoothConfig(**settings).check()
