"""The settings of K-FAC: its rate, what it does not go with, and the rows of the recipe that it changes."""

from distgnn.config import Settings, TrainConfig, read_sections
from distgnn.config.recipes import pick


def test_it_has_a_rate_of_its_own_in_a_file_too(tmp_path):
    assert TrainConfig(optimizer="kfac").lr == 0.01
    (tmp_path / "config.toml").write_text('[train]\noptimizer = "kfac"\n')
    assert Settings().with_saved(read_sections(tmp_path / "config.toml"), "config.toml").train.lr == 0.01


def test_the_recipe_takes_it_with_its_rate_unless_an_optimizer_is_given():
    assert pick("fast", {}, "node", set())[0] == {"feat_norm": "standardize", "optimizer": "kfac", "lr": 0.01}
    assert pick("fast", {"sparse_feats": True}, "node", set())[0]["optimizer"] == "kfac"
    assert pick("fast", {}, "node", {"optimizer"})[0] == {"feat_norm": "standardize"}
    assert "optimizer" not in pick(None, {}, "node", set())[0]
