"""The page: names are escaped, nothing is loaded from elsewhere, a drawing is as large as it looks."""

import json
import re

from report_inputs import bench_row, record_of, write_bench, write_run

from distgnn.extras.report.page import lines
from distgnn.system.plots import Axis, Series

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


def test_a_long_line_is_as_large_as_it_looks_and_any_name_has_its_legend():
    points = [(float(i), 1.0 + (i == 7_777)) for i in range(20_000)]
    drawn = lines([Series("图", points), Series("_y", points[:2])], Axis("x"), Axis("y"))
    assert len(drawn) < 30_000 and "图" in drawn and "_y" in drawn
