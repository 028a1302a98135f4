"""`train --config` and `read_settings`: a run's own config.toml gives the same run again."""

import json

import pytest

from distgnn.config import Settings, TrainConfig, read_settings
from distgnn.errors import InputError, RunError

SMALL = ("--hidden-feats", 8, "--num-layers", 2, "--epochs", 4, "--eval-every", 2, "--lr", 0.03, "--seed", 5)


def losses(folder) -> list[float]:
    return [json.loads(line)["loss"] for line in (folder / "metrics.jsonl").read_text().splitlines()]


def test_a_runs_own_file_gives_the_same_losses_and_given_options_win(ran, refused, parts, tmp_path):
    first, again, other = (tmp_path / name for name in ("first", "again", "other"))
    ran("train", parts, *SMALL, "--model", "gcn", "--run-dir", first, "--quiet")
    file = first / "config.toml"
    ran("train", parts, "--config", file, "--run-dir", again, "--quiet")
    assert losses(again) == losses(first)
    ran("train", parts, "--config", file, "--run-dir", other, "--quiet", "--epochs", 2, "--seed", 6)
    assert len(losses(other)) == 2 and losses(other) != losses(first)[:2]

    settings = read_settings(file)
    assert settings.train == TrainConfig(epochs=4, eval_every=2, lr=0.03, seed=5, metric="accuracy")
    assert (settings.model.name, settings.model.hidden_feats) == ("gcn", 8)

    text = file.read_text()
    file.write_text(text.replace("num_feats = 8", "num_feats = 7"))
    refused("train", parts, "--config", file, says="is of another graph: num_feats is 7 there, 8 here")
    refused("train", parts, "--config", file, "--run-dir", again, "--resume", says="leave --config out")


@pytest.mark.parametrize(
    "text, says",
    [
        ("[train]\nepoch = 3\n", "[train] has no setting 'epoch' (did you mean epochs?)"),
        ("[training]\nepochs = 3\n", "unknown section [training] (did you mean train?)"),
        ("[train]\nepochs = 'many'\n", "damaged: [train] epochs is 'many'"),
        ("[train]\nseed = 99999999999999999999\n", "damaged: [train] seed is '99999999999999999999'"),
        ("[run]\nwarmup_epochs = 'two'\n", "damaged: [run] warmup_epochs is 'two'"),
        ("[model]\nname = 'sgae'\n", "unknown model 'sgae': choose from sage"),
        ("[train\n", "config.toml cannot be read, or is damaged"),
        (f"[train]\nlr = {'9' * 5000}\n", "config.toml cannot be read, or is damaged"),
        *((f"[train]\n{name} = 1{'0' * 400}\n", f"[train] {name} is '1000") for name in ("epochs", "lr")),
    ],
)
def test_mistakes_in_the_file_are_one_line(refused, parts, tmp_path, text, says):
    (tmp_path / "config.toml").write_text(text)
    refused("train", parts, "--config", tmp_path / "config.toml", says=says)


def test_no_file(refused, parts, tmp_path):
    refused("train", parts, "--config", tmp_path / "none.toml", says="none.toml cannot be read")
    with pytest.raises(RunError, match="cannot be read"):
        read_settings(tmp_path / "none.toml")


def test_a_wire_that_followed_the_forward_one_still_does(tmp_path):
    file = tmp_path / "config.toml"
    file.write_text('[run]\nalgorithm = "cd-5"\nwire = "int8"\nwire_backward = "int8"\n')
    assert read_settings(file).schedule.wires == ("int8", "int8")
    given = Settings().with_saved({"run": {"wire": "int8", "wire_backward": "int8"}}, file, {"wire"})
    assert given.schedule.wires == ("float32", "float32")


def test_a_number_without_a_default_is_taken(tmp_path):
    file = tmp_path / "config.toml"
    file.write_text("[train]\nclip_grad = 2.0\n")
    assert read_settings(file).train.clip_grad == 2.0


def test_settings_of_one_run_are_not_taken(tmp_path):
    file = tmp_path / "config.toml"
    file.write_text('[train]\nrun_dir = "site"\noverwrite = true\nresume = true\n')
    assert read_settings(file).train == TrainConfig()
    file.write_text("[run]\nno_such = 1\n")
    with pytest.raises(InputError, match="has no setting 'no_such'"):
        read_settings(file)
