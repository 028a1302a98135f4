"""Runs on the page: their numbers come from the files; damage is named; names tell them apart."""

import json
import re

from report_inputs import close, record_of, write_run

from distgnn.extras.report.read import read_inputs


def test_two_runs(page, tmp_path):
    """Cells, the settings that differ and no other, and curves that are the records from the first epoch on."""
    found = page(write_run(tmp_path / "one"), write_run(tmp_path / "two", "cd-5"))
    assert found.row("state") == ["finished", "finished"]
    assert found.row("model") == ["sage 3 64"] * 2
    assert found.row("algorithm") == ["cd-0, owners, float32", "cd-5, owners, int8"]
    assert (found.row("ranks"), found.row("threads")) == (["2"] * 2, ["12"] * 2)
    assert found.row("test metric") == ["0.7654"] * 2
    assert found.row("epoch seconds median") == ["114 ms"] * 2
    assert found.row("sent bytes per epoch") == ["971 kB", "54.1 kB"]
    assert found.row("peak rss bytes") == ["554 MB, 523 MB"] * 2
    assert found.row("memory.blocks.activations") == ["100 MB, 120 MB"] * 2
    assert ["one", "0, 1", "host node7, cores 0-11, 12 threads"] in [row for table in found.tables for row in table]
    differences = next(table for table in found.tables if table[0][0] == "setting")
    assert differences[1:] == [["run.algorithm", "cd-0", "cd-5"], ["run.wire", "float32", "int8"]]
    for name, algorithm in (("one", "cd-0"), ("two", "cd-5")):
        drawn = [points for line, points in found.lines if line == name]
        records = [record_of(epoch, algorithm) for epoch in range(8)]
        close(drawn[0], [(record["epoch"], record["loss"]) for record in records])
        scores = [(record["epoch"], record["test_metric"]) for record in records if "test_metric" in record]
        close(drawn[1], scores)
        close(drawn[2], scores)


def test_one_run(page, tmp_path):
    """Phases are the means of the middle half; bytes per pair; whole ticks of epochs and ranks."""
    run = write_run(tmp_path / "one")
    found = page(run)
    table = next(table for table in found.tables if table[0][:2] == ["run", "aggregate"])
    assert table[0][1:] == ["aggregate", "dense, packing and all else", "all-reduce", "wait"]
    assert table[1] == ["one", "21.4 ms", "60.6 ms", "12 ms", "20 ms"]  # of epochs 2 to 6, epoch 0 compiles
    assert [label.get_text() for label in found.axes[0].get_xticklabels()][:3] == ["0", "2", "4"]
    pairs = next(axes for axes in found.axes if axes.get_ylabel() == "from rank")
    assert [text.get_text() for text in pairs.texts] == ["0", "401,000", "570,000", "0"]
    of_ranks = [axis for axes in found.axes for axis in (axes.xaxis, axes.yaxis) if "rank" in axis.get_label_text()]
    of_ranks = [axis for axis in of_ranks if axis.get_label_text() in ("rank", "from rank", "to rank")]
    assert len(of_ranks) == 3 and all(float(tick).is_integer() for axis in of_ranks for tick in axis.get_ticklocs())
    summary = json.loads((run / "summary.json").read_text())
    for wrong in ([[0, 1]], [[0, "x"], [1, 0]], [0, 1], "x", [[0, 1], [2]]):
        (run / "summary.json").write_text(json.dumps(summary | {"pair_bytes_per_epoch": wrong}))
        assert read_inputs([str(run)])["run"][0].pair_bytes == []


def test_seeds_are_shown_one_by_one_and_together(page, tmp_path):
    run = write_run(tmp_path / "run")
    summary = json.loads((run / "summary.json").read_text()) | {"seeds": [3, 4], "test_metric_std": 0.0123}
    (run / "summary.json").write_text(json.dumps(summary))
    for seed in (3, 4):
        write_run(run / f"seed-{seed}")
    found = page(run)
    assert found.tables[0][0] == ["", "run/seed-3", "run/seed-4"]
    assert all(said in found.text for said in ("over seeds.test_metric_std0.0123", "3, 4"))


def test_errors_of_values_are_no_percentages(page, tmp_path):
    run = write_run(tmp_path / "run", finished=False)
    config = (run / "config.toml").read_text().replace('metric = "accuracy"', 'task = "regression"')
    (run / "config.toml").write_text(config)
    found = page(run)
    assert "Test mse" in found.text and "lower is better" in found.text and "mse (%)" not in found.text


def test_an_unfinished_run_is_shown_as_such(page, tmp_path):
    found = page(write_run(tmp_path / "run", epochs=5, finished=False))
    assert found.row("state") == ["unfinished"]
    assert "there is no summary, 5 epochs are recorded" in found.text
    assert found.row("epochs") == ["5"]
    assert "started: host node7" in found.text  # the log's last line
    (tmp_path / "run" / "metrics.jsonl").unlink()
    found = page(tmp_path / "run")
    assert "no epoch is recorded" in found.text and "metrics.jsonl cannot be read" in found.text
    assert found.lines == []


def test_damaged_lines_are_named_and_the_others_shown(page, tmp_path):
    run = write_run(tmp_path / "run")
    lines = (run / "metrics.jsonl").read_text().splitlines()
    lines[2] = "{}"
    lines[3] = "[1, 2]"
    lines[4] = json.dumps(record_of(1) | {"loss": 1.5})
    wrong = {"loss": "<b>", "seconds": None, "sent_bytes": True, "wait_seconds_mean": [], "exchange_waits": {"x": [1]}}
    lines[6] = json.dumps({"epoch": 6} | wrong)
    (run / "metrics.jsonl").write_text("\n".join(lines) + '\n{"epoch": 8, "lo')
    found = page(run)
    for said in ("line 3 has no epoch", "line 4 is no JSON object", "line 5 repeats epoch 1", "line 9 is cut short"):
        assert said in found.text
    close(found.lines[0][1], [(0, 2.3), (1, 1.5), *((epoch, record_of(epoch)["loss"]) for epoch in (5, 7))])


def test_numbers_that_are_none_are_left_out(page, tmp_path):
    run = write_run(tmp_path / "run")
    record = json.dumps(record_of(1)).replace('"loss": ', '"loss": NaN, "old": ')
    (run / "metrics.jsonl").write_text(
        f"{json.dumps(record_of(0))}\n{record}\n" + f'{{"epoch": 2, "loss": 1{"0" * 400}}}\n'
    )
    (run / "summary.json").write_text(
        '{"test_metric": Infinity, "peak_rss_bytes": [1, "x"], "versions": 7, "ranks": {}, '
        '"memory": {"peak": 7, "blocks": {"x": ["y"]}}}'
    )
    found = page(run)
    close(found.lines[0][1], [(0, record_of(0)["loss"])])
    assert not re.search(r"\b(nan|inf)\b", found.text, re.IGNORECASE)


def test_two_runs_of_one_name_are_told_apart(page, tmp_path):
    found = page(write_run(tmp_path / "a" / "run"), write_run(tmp_path / "b" / "run"))
    assert found.tables[0][0] == ["", "a/run", "b/run"]
    assert "All settings are the same." in found.text
