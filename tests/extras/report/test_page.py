"""Numbers of the page come from the files: cells, curves, bars; names are escaped; nothing is loaded from elsewhere."""

import json
import re

import pytest
from report_inputs import bench_row, record_of, write_bench, write_run

from distgnn.extras.report.charts import lines
from distgnn.extras.report.read import read_inputs
from distgnn.partition import describe
from distgnn.system.plots import Axis, Series


def close(found, expected):
    """Are points those expected?"""
    assert [pytest.approx(point) for point in expected] == found


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


def test_bench_cells_curves_and_scaling(page, tmp_path):
    rows = [bench_row("cd-0"), bench_row("cd-5", speedup_vs_exact=0.96, final_metric=None, emulated_seconds=0.2)]
    found = page(write_bench(tmp_path / "bench.json", rows))
    assert found.row("cd-0")[:5] == ["131 ms", "125 ms", "140 ms", "–", "1"]
    assert found.row("cd-0")[5:] == ["41.1 ms", "51.9 ms", "61.8 ms", "971 kB", "485 kB", "971 kB", "0.8983", "500 MB"]
    assert found.row("cd-5")[3:5] == ["200 ms", "0.96"]
    assert found.row("cd-5")[-2] == "–"
    close(found.lines[0][1], [(1, 0.1), (2, 0.2), (5, 0.5), (8, 0.8)])
    assert "distgnn bench parts" in found.text and "A processor" in found.text
    scaled = [bench_row("cd-0", ranks, epoch_seconds_median=seconds) for ranks, seconds in ((1, 0.4), (4, 0.131))]
    found = page(write_bench(tmp_path / "scaling.json", scaled))
    close(found.lines[-2][1], [(1, 0.4), (4, 0.131)])
    close(found.lines[-1][1], [(1, 971_000), (4, 971_000)])
    assert found.row("cd-0, 4 ranks")[0] == "131 ms"


def test_a_partition_in_numbers(page, partition, tmp_path):
    facts = describe(partition)
    found = page(partition)
    for part in facts["parts"]:
        assert f"{part['owned']:,}" in found.row(str(part["part_id"]))
    cells = next(axes for axes in found.axes if axes.get_ylabel() == "from rank").texts
    assert [cell.get_text() for cell in cells] == [f"{rows:,}" for row in facts["pair_rows"] for rows in row]
    assert f"{facts['replication_factor']:.3f}" in found.text
    sent = next(points for name, points in found.lines if name == "sent")
    close(sent, [(part["part_id"], part["sent_rows"]) for part in facts["parts"]])


def test_the_json_of_any_command(page, tmp_path):
    """Single values with their units, tables of objects, and bytes of each pair."""
    of_rank = [{"rank": rank, "wait_seconds": 0.1 * (rank + 1), "sent_bytes": 5000} for rank in range(2)]
    rows = [{"title": "slow", "epoch_seconds": 0.25, "of_rank": of_rank, "pair_bytes": [[0, 7], [5, 0]]}]
    content = {"graph": {"name": "g", "num_nodes": 3000}, "fits": True, "limit": None, "replays": rows}
    (tmp_path / "replay.json").write_text(json.dumps(content))
    found = page(tmp_path / "replay.json")
    assert all(said in found.text for said in ("3,000", "yes", "Output: replay.json", "replays slow: of rank"))
    assert found.row("slow") == ["250 ms"] and found.row("1") == ["200 ms", "5 kB"]
    assert [text.get_text() for axes in found.axes for text in axes.texts] == ["0", "7", "5", "0"]


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


HOSTILE = ["<script>alert(1)</script>", "[/x]", "\ud800", '"><img src=x onerror=alert(1)>', "\x00\x1b[31m", "a\u202eb"]


def test_hostile_names_are_shown_and_do_nothing(page, tmp_path):
    runs = [write_run(tmp_path / f"<b>{number} & [red]", epochs=1) for number in range(len(HOSTILE))]
    for run, name in zip(runs, HOSTILE, strict=True):
        config = (run / "config.toml").read_text()
        if "\ud800" not in name and "\x00" not in name:
            config = config.replace('"small"', json.dumps(name)).replace('"owners"', json.dumps(name))
        (run / "config.toml").write_text(config)
        (run / "metrics.jsonl").write_text(json.dumps(record_of(0) | {"exchange_waits": {name: [1, 2, 3]}}) + "\n")
        (run / "summary.json").write_text(json.dumps({"metric": name, "versions": {name: name}, "test_metric": 0.5}))
    rows = [bench_row(name) for name in HOSTILE]
    found = page(*runs, write_bench(tmp_path / "bench.json", rows, graph=HOSTILE[0], command=HOSTILE), whole=True)
    found.source.encode()
    assert {"script", "img", "b"}.isdisjoint(found.tags) and "<b>0" in found.tables[1][0][1]
    assert "".join(found.source.split("\n")).isprintable()
    assert all(name.encode("unicode_escape").decode() in found.text for name in HOSTILE)


def test_the_same_inputs_give_the_same_bytes_and_nothing_is_loaded_from_elsewhere(page, partition, tmp_path):
    bench = write_bench(tmp_path / "bench.json", [bench_row("cd-0"), bench_row("paper")])
    inputs = write_run(tmp_path / "one"), write_run(tmp_path / "two", "cd-5", finished=False), bench, partition
    found = page(*inputs, whole=True)
    pieces = re.findall(r"<figure><h4>(.+?)</h4>.*?<figcaption>(.+?)</figcaption></figure>", found.source, re.DOTALL)
    assert len(pieces) == len(found.figures) >= 12 and all(sentence.endswith(".") for _, sentence in pieces)
    assert page(*inputs, whole=True).source == found.source
    assert set(re.findall(r"url\((.)", found.source)) == {"#"}  # to pieces of a drawing
    source = re.sub(r"data:image/png;base64,[\w+/=\s]+", "data", found.source)  # cells of matrices
    for word in ("http", "//", "@import", "<script", "src="):
        assert word not in source
    assert set(re.findall(r'href="(.)', source)) == {"#", "d"}  # to sections, and the empty icon
    anchors = set(re.findall(r'<a href="#([^"]+)"', found.source))
    assert anchors == set(re.findall(r'<section id="([^"]+)"', found.source))


def test_two_runs_of_one_name_are_told_apart(page, tmp_path):
    found = page(write_run(tmp_path / "a" / "run"), write_run(tmp_path / "b" / "run"))
    assert found.tables[0][0] == ["", "a/run", "b/run"]
    assert "All settings are the same." in found.text


def test_a_long_line_is_as_large_as_it_looks_and_any_name_has_its_legend():
    points = [(float(i), 1.0 + (i == 7_777)) for i in range(20_000)]
    drawn = lines([Series("图", points), Series("_y", points[:2])], Axis("x"), Axis("y"))
    assert len(drawn) < 30_000 and "图" in drawn and "_y" in drawn
