"""Settings that no rank could run are refused by the launcher, before any rank starts."""

import pytest


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--remat", "--wire", "int8"], "--remat repeats exchanges"),
        (["--remat", "--wire-backward", "bfloat16"], "--remat repeats exchanges"),
        (["--remat", "--algorithm", "cd-2"], "--remat repeats exchanges"),
        (["--model", "gin", "--dtype", "bfloat16"], "bfloat16 is for sage, gcn, gat"),
        (["--columns", "0"], "columns is 0: expected a whole number"),
        (["--columns", "2", "--model", "gat"], "--columns is for models of sums and means: gat"),
        (["--columns", "2", "--update", "copies"], "columns are for update on owners"),
        (["--columns", "2", "--batch", "cluster:2"], "cluster batches are for one rank a part"),
        (["--columns", "2", "--inductive"], "inductive training is for one rank a part"),
        (
            ["--columns", "2", "--restarts", "1", "--min-ranks", "1"],
            "with --columns ranks are started again as many as before",
        ),
        (["--norm", "batch", "--dtype", "bfloat16"], "bfloat16 is for sage, gcn, gat"),
    ],
)
def test_settings_are_refused_before_ranks_start(refused, parts, tmp_path, words, says):
    refused("train", parts, "--run-dir", tmp_path / "run", *words, says=says)
