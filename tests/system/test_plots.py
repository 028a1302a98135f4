"""Figures: lines that differ without colour, one unit for an axis, names as they can be shown, bars that add up."""

from itertools import islice

import pytest
from matplotlib.figure import Figure

from distgnn.system.plots import BYTES, SECONDS, SHARES, Axis, Series, label_axis, line_styles, plot_lines, short, stack


def test_no_two_of_the_first_56_lines_are_alike_without_colour():
    assert len({(one["marker"], str(one["linestyle"])) for one in islice(line_styles(), 56)}) == 56


def test_lines_without_points_are_left_out_and_marks_of_others_do_not_coincide():
    axes, points = Figure().subplots(), [(x, 0.5) for x in range(100)]
    plot_lines(
        axes, [Series("a", points), Series("none", []), Series("_b", points)], Axis("epochs", whole=True), Axis("")
    )
    assert [line.get_label() for line in axes.lines] == ["a", " _b"]
    (first, every), (second, same) = (line.get_markevery() for line in axes.lines)
    assert every == same and first % every != second % every


@pytest.mark.parametrize(
    ("units", "largest", "label"),
    [(SECONDS, 4e-4, "it (µs)"), (SECONDS, 0.02, "it (ms)"), (BYTES, 3e9, "it (GB)"), (SHARES, 0.9, "it (%)")],
)
def test_ticks_of_an_axis_are_in_one_unit(units, largest, label):
    axes = Figure().subplots()
    axes.set_ylim(0, largest)
    label_axis(axes.yaxis, Axis("it", units))
    factor = next(factor for factor, unit in units if f"({unit})" in label)
    assert (axes.get_ylabel(), axes.yaxis.get_major_formatter()(2 * factor, 0)) == (label, "2")


def test_names_are_short_and_plain_and_bars_end_at_their_sums():
    assert short("a" * 60) == f"{'a' * 19}…{'a' * 8}" and short("\x1b[31m") == "\\x1b[31m"
    drawn = []
    rows = [("one", {"aggregate": 1.0, "wait": 2.0}), ("two", {"dense": 0.5})]
    assert stack(lambda _, values, **how: drawn.append((values, how["left"])), "left", rows) == [3.0, 0.5]
    assert drawn == [([1.0, 0.0], [0.0, 0.0]), ([2.0, 0.0], [1.0, 0.0]), ([0.0, 0.5], [3.0, 0.0])]
