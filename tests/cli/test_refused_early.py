"""Settings that no rank could run are refused by the launcher, before any rank starts."""

import pytest


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--remat", "--wire", "int8"], "--remat repeats exchanges"),
        (["--remat", "--wire-backward", "bfloat16"], "--remat repeats exchanges"),
        (["--remat", "--algorithm", "cd-2"], "--remat repeats exchanges"),
        (["--model", "gin", "--dtype", "bfloat16"], "bfloat16 is for sage, gcn, gat"),
        (["--norm", "batch", "--dtype", "bfloat16"], "bfloat16 is for sage, gcn, gat"),
    ],
)
def test_settings_are_refused_before_ranks_start(refused, parts, tmp_path, words, says):
    refused("train", parts, "--run-dir", tmp_path / "run", *words, says=says)
