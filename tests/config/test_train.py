"""Learning rates that are not given: those of the optimizer, also where a file names it."""

import pytest

from distgnn.config import Settings, TrainConfig, read_sections


@pytest.mark.parametrize(("optimizer", "rate"), [("adam", 0.003), ("adamw", 0.003), ("sgd", 0.01)])
def test_each_optimizer_has_a_rate_of_its_own(optimizer, rate):
    assert TrainConfig(optimizer=optimizer).lr == rate
    assert TrainConfig(optimizer=optimizer, lr=0.2).lr == 0.2


@pytest.mark.parametrize(
    ("lines", "given", "rate"),
    [
        ('optimizer = "sgd"', set(), 0.01),
        ('optimizer = "sgd"\nlr = 0.5', set(), 0.5),
        ('optimizer = "sgd"', {"lr"}, 0.003),  # given: what the settings have
        ("epochs = 3", set(), 0.003),
    ],
)
def test_a_file_that_names_an_optimizer_alone_means_its_rate(tmp_path, lines, given, rate):
    file = tmp_path / "config.toml"
    file.write_text(f"[train]\n{lines}\n")
    assert Settings().with_saved(read_sections(file), file, given).train.lr == rate
