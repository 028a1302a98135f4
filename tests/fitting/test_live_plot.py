"""`dg.LivePlot`: what another process writes is drawn while it writes; what cannot be drawn is said."""

import json
import re
import time

import pytest

import distgnn as dg
from distgnn.errors import InputError
from distgnn.fitting import live_plot
from distgnn.fitting.live_plot import following


def write(file, count: int) -> None:
    file.parent.mkdir(exist_ok=True)
    records = ({"epoch": epoch, "loss": 1 / (epoch + 1), "valid_accuracy": 0.1 * epoch} for epoch in range(count))
    file.write_text("".join(json.dumps(record) + "\n" for record in records))


def test_records_of_another_process_are_drawn_as_they_come(tmp_path, monkeypatch):
    drawn = []
    draw = live_plot.draw
    monkeypatch.setattr(live_plot, "draw", lambda records: (drawn.append(len(records)), draw(records))[1])
    monkeypatch.setattr(live_plot, "LOOK_SECONDS", 0.01)
    file, plot = tmp_path / "run" / "metrics.jsonl", dg.LivePlot(tmp_path / "curves.svg", seconds=0)
    write(file, 9)
    with following([plot], file.parent, resume=False):
        file.rename(tmp_path / "old.jsonl")  # that run is overwritten
        assert not drawn
        write(file, 2)
        while not drawn:
            time.sleep(0.01)
        write(file, 3)
    assert drawn[0] == 2 and drawn[-1] == 3
    text = plot.file.read_text()
    assert text.startswith("<?xml") and len(re.findall(r"<g id=\"axes_", text)) == 2  # loss, accuracy
    with following([plot], file.parent, resume=True):
        pass
    assert drawn[-1] == 3 and len(drawn) > 2


def test_a_plot_that_fails_does_not_end_the_run(tmp_path, capfd):
    write(tmp_path / "run" / "metrics.jsonl", 2)
    (tmp_path / "no").mkdir()
    plot = dg.LivePlot(tmp_path / "no" / "curves.png")
    (tmp_path / "no").rmdir()
    with following([plot], tmp_path / "run", resume=True):
        pass
    assert re.match(r"distgnn: LivePlot draws no more: FileNotFoundError: .*\n$", capfd.readouterr().err)


def test_one_rank_draws_itself_and_a_script_needs_a_file(graph, tmp_path, capfd):
    plots = [dg.LivePlot(tmp_path / "curves.pdf"), dg.LivePlot()]
    dg.fit(graph, "sage", ranks=1, epochs=3, hidden_feats=8, quiet=True, callbacks=plots)
    assert plots[0].file.read_bytes()[:4] == b"%PDF"
    assert "LivePlot draws in notebooks; in a script, dg.LivePlot(" in capfd.readouterr().err


def test_what_cannot_be_drawn_is_refused(monkeypatch):
    with pytest.raises(InputError, match=r"cannot write curves.txt: expected a name that ends in .png, .svg, .pdf"):
        dg.LivePlot("curves.txt")
    monkeypatch.setattr(live_plot, "find_spec", lambda name: None)
    with pytest.raises(InputError, match="needs the package matplotlib: pip install matplotlib"):
        dg.LivePlot()
