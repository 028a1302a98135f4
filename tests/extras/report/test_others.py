"""Benchmarks, partitions and the JSON of any command on the page: cells, curves and bars come from the files."""

import json

from report_inputs import bench_row, close, write_bench

from distgnn.partition import describe


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
