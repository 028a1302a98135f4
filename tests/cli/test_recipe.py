"""`distgnn train --recipe fast`: says what it picked, leaves what was given; a resumed run keeps its own settings."""

from distgnn.config import read_sections


def test_a_recipe_says_what_it_picked_and_is_in_the_settings(run, parts, tmp_path):
    folder = tmp_path / "run"
    words = ["--recipe", "fast", "--lr", 0.02, "--epochs", 1, "--hidden-feats", 8, "--run-dir", folder, "--log", ""]
    code, _, err = run("train", parts, *words)
    assert code == 0, err
    assert "recipe fast (dense features): --feat-norm standardize" in err
    settings = read_sections(folder / "config.toml")
    assert (settings["run"]["feat_norm"], settings["train"]["lr"]) == ("standardize", 0.02)
    assert settings["train"]["patience"] == 10  # evaluations of 50 epochs
    code, _, err = run("train", parts, "--recipe", "fast", "--resume", "--epochs", 2, "--run-dir", folder, "--log", "")
    assert code == 0, err
    assert "recipe" not in err
    assert read_sections(folder / "config.toml")["train"]["lr"] == 0.02
