"""Bars and matrices as SVG: time by phase, one value per rank, rows per pair of ranks."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from distgnn.report.axes import Axis, Scale, name_of, tick_text, ticks, unit_of
from distgnn.report.charts import BOTTOM, CENTRED, LEFT, RIGHT, TOP, _svg
from distgnn.report.html import plain

PHASES = ("aggregate", "dense", "pack", "all-reduce", "wait")  # the order of classes p0 … in style.py; wait has stripes
REST = "dense, packing and all else"  # where only some phases were recorded: the place of "dense"
NAME_WIDTH, BARS_FROM, BAR, STEP = 190, 178, 20, 30
MOST_CELLS = 32  # of a matrix, in each direction; beyond it neighbouring ranks are added up
MOST_COLUMNS = 60

Phases = dict[str, float]


def phase_class(name: str) -> int:
    """Number of a phase's colour."""
    return PHASES.index("dense" if name == REST else name)


def phase_legend(names: Sequence[str]) -> str:
    """The legend of phases, outside of the plot."""
    samples = "".join(
        f'<span><svg class="box" viewBox="0 0 22 14">{_block(name, 1, 1, 20, 12)}</svg>{plain(name)}</span>'
        for name in names
    )
    return f'<div class="legend">{samples}</div>'


def _block(name: str, x: float, y: float, width: float, height: float, title: str = "") -> str:
    """One block of a phase; waiting is striped, so that it stands out in grey."""
    inside = f"<title>{title}</title>" if title else ""
    size = f'width="{max(width, 0):.2f}" height="{max(height, 0):.2f}"'
    block = f'<rect class="p{phase_class(name)}" x="{x:.2f}" y="{y:.2f}" {size}>{inside}</rect>'
    if name != "wait" or width < 3 or height < 3:
        return block
    stripes = "".join(f"M{x + at:.1f} {y:.1f}v{height:.1f}" for at in range(2, int(width), 4))
    return f'{block}<path class="stripes" d="{stripes}"></path>'


def stacked(rows: Sequence[tuple[str, Phases]], axis: Axis, show: Callable[[float], str], width: int = 760) -> str:
    """Horizontal bars, one per name, stacked by phase; the sum stands at the end of each."""
    if not rows:
        return ""
    most = max(sum(phases.values()) for _, phases in rows) or 1.0
    across = Scale(0.0, most, NAME_WIDTH, width - 76)
    height = TOP + STEP * len(rows) + BOTTOM
    pieces = [_bottom_axis(across, axis, height)]
    for line, (name, phases) in enumerate(rows):
        y, at = TOP + STEP * line + (STEP - BAR) / 2, across.first
        pieces.append(f'<text x="{NAME_WIDTH - 8}" y="{y + 14}" text-anchor="end">{plain(_short(name))}</text>')
        for phase, value in phases.items():
            wide = across.at(value) - across.first
            pieces.append(_block(phase, at, y, wide, BAR, f"{plain(name)}, {phase}: {plain(show(value))}"))
            at += wide
        total = plain(show(sum(phases.values())))
        pieces.append(f'<text class="value" x="{at + 6:.1f}" y="{y + 14}">{total}</text>')
    names = list(dict.fromkeys(phase for _, phases in rows for phase in phases))
    return _svg(width, height, axis.label, "".join(pieces)) + phase_legend(names)


def bars(rows: Sequence[tuple[str, float]], axis: Axis, show: Callable[[float], str], width: int = 460) -> str:
    """Horizontal bars, one per name, with their values."""
    if not rows:
        return ""
    across = Scale(0.0, max(value for _, value in rows) or 1.0, BARS_FROM, width - 76)
    height = TOP + STEP * len(rows) + BOTTOM
    pieces = [_bottom_axis(across, axis, height)]
    for line, (name, value) in enumerate(rows):
        y, end = TOP + STEP * line + (STEP - BAR) / 2, across.at(value)
        pieces.append(f'<text x="{BARS_FROM - 8}" y="{y + 14}" text-anchor="end">{plain(_short(name))}</text>')
        pieces.append(f'<rect class="bar" x="{BARS_FROM}" y="{y}" width="{end - BARS_FROM:.2f}" height="{BAR}"></rect>')
        pieces.append(f'<text class="value" x="{end + 6:.1f}" y="{y + 14}">{plain(show(value))}</text>')
    return _svg(width, height, axis.label, "".join(pieces))


def _short(name: str, most: int = 28) -> str:
    return name if len(name) <= most else f"{name[: most - 9]}…{name[-8:]}"


def _bottom_axis(across: Scale, axis: Axis, height: float) -> str:
    factor, unit = unit_of(axis, across.low, across.high)
    bottom = height - BOTTOM
    pieces = []
    for value in ticks(0.0, across.high / factor, 6, axis.whole):
        at = across.at(value * factor)
        pieces.append(f'<path class="grid" d="M{at:.1f} {TOP}V{bottom}"></path>')
        pieces.append(f'<text x="{at:.1f}" y="{bottom + 17}" {CENTRED}>{tick_text(value)}</text>')
    middle = (across.first + across.last) / 2
    name = plain(name_of(axis, unit))
    return "".join(pieces) + f'<text class="name" x="{middle:.0f}" y="{height - 8}" {CENTRED}>{name}</text>'


def columns(epochs: Sequence[tuple[int, Phases]], axis: Axis, width: int = 460, height: int = 240) -> str:
    """Columns over epochs, stacked by phase, at most MOST_COLUMNS: beyond it each is the mean of neighbouring epochs.

    The first epoch compiles: a column far above the others ends at the top with a mark; its value is in its title.
    """
    if not epochs:
        return ""
    groups = _groups(epochs)
    sums = sorted(sum(phases.values()) for _, _, phases in groups)
    top = min(sums[-1], 1.6 * sums[len(sums) * 9 // 10 - (len(sums) > 1)]) or 1.0
    across = Scale(0, len(groups), LEFT, width - RIGHT)
    up = Scale(0.0, top * 1.04, height - BOTTOM, TOP)
    wide = (across.last - across.first) / len(groups)
    pieces = [_left_axis(up, axis, width)]
    for place, (first, last, phases) in enumerate(groups):
        x, y = across.at(place) + 0.06 * wide, up.first
        label = f"epoch {first}" if first == last else f"epochs {first} to {last}"
        for phase, value in phases.items():
            tall = min(up.first - up.at(value), y - TOP)
            pieces.append(_block(phase, x, y - tall, 0.88 * wide, tall, f"{label}, {phase}: {value:.3g} s"))
            y -= tall
        if sum(phases.values()) > up.high:
            pieces.append(f'<path class="cut" d="M{x - 1:.1f} {TOP + 7}l{0.88 * wide + 2:.1f} -4"></path>')
    pieces += _epoch_ticks(groups, across, up.first)
    middle = (across.first + across.last) / 2
    pieces.append(f'<text class="name" x="{middle:.0f}" y="{height - 8}" {CENTRED}>epoch</text>')
    names = list(dict.fromkeys(phase for _, _, phases in groups for phase in phases))
    return _svg(width, height, axis.label, "".join(pieces)) + phase_legend(names)


def _groups(epochs: Sequence[tuple[int, Phases]]) -> list[tuple[int, int, Phases]]:
    """(first epoch, last epoch, mean of each phase); the first epoch stands by itself."""
    size = -(-max(len(epochs) - 1, 1) // (MOST_COLUMNS - 1))
    chunks = [epochs[:1], *(epochs[start : start + size] for start in range(1, len(epochs), size))]
    return [
        (chunk[0][0], chunk[-1][0], {name: sum(one[name] for _, one in chunk) / len(chunk) for name in chunk[0][1]})
        for chunk in chunks
    ]


def _left_axis(up: Scale, axis: Axis, width: int) -> str:
    factor, unit = unit_of(axis, up.low, up.high)
    pieces = []
    for value in ticks(0.0, up.high / factor, 5):
        at = up.at(value * factor)
        pieces.append(f'<path class="grid" d="M{LEFT} {at:.1f}H{width - RIGHT}"></path>')
        pieces.append(f'<text x="{LEFT - 6}" y="{at + 4:.1f}" text-anchor="end">{tick_text(value)}</text>')
    middle, name = (up.first + up.last) / 2, plain(name_of(axis, unit))
    turned = f'transform="translate(13 {middle:.0f}) rotate(-90)"'
    return "".join(pieces) + f'<text class="name" {turned} {CENTRED}>{name}</text>'


def _epoch_ticks(groups: list[tuple[int, int, Phases]], across: Scale, bottom: float) -> list[str]:
    wanted = {round(at) for at in ticks(0, len(groups) - 1, 7, whole=True)} if len(groups) > 1 else {0}
    return [
        f'<text x="{across.at(place + 0.5):.1f}" y="{bottom + 17}" {CENTRED}>{first}</text>'
        for place, (first, _, _) in enumerate(groups)
        if place in wanted
    ]


def matrix(values: Sequence[Sequence[int]], row_name: str, column_name: str, unit: str = "rows") -> str:
    """A square of cells, darker where the value is larger; numbers of `unit` inside where there is room."""
    count = len(values)
    size = -(-count // MOST_CELLS)
    ranks = [(first, min(first + size, count) - 1) for first in range(0, count, size)]
    cells = [
        [sum(sum(values[i][b : e + 1]) for i in range(a, c + 1)) for b, e in ranks] for a, c in ranks
    ]  # the sum over neighbouring ranks where there are many
    most = max((cell for line in cells for cell in line), default=0) or 1
    side = max(12, min(56, 380 // len(ranks)))
    pieces = []
    for line, row in enumerate(cells):
        for place, cell in enumerate(row):
            x, y, strength = 60 + place * side, 30 + line * side, cell / most
            title = (
                f"<title>{row_name} {_span(ranks[line])} {column_name} {_span(ranks[place])}: {cell:,} {unit}</title>"
            )
            box = f'x="{x}" y="{y}" width="{side - 1}" height="{side - 1}"'
            pieces.append(f'<rect class="cell" fill-opacity="{0.04 + 0.86 * strength:.3f}" {box}>{title}</rect>')
            if side >= 34:
                dark = " on" if strength > 0.5 else ""
                pieces.append(
                    f'<text class="in{dark}" x="{x + side / 2}" y="{y + side / 2 + 4}" {CENTRED}>{_fit(cell)}</text>'
                )
    every = max(1, -(-len(ranks) * 20 // (side * len(ranks))))
    for place in range(0, len(ranks), every):
        middle = place * side + side / 2
        pieces.append(f'<text x="{60 + middle}" y="24" {CENTRED}>{ranks[place][0]}</text>')
        pieces.append(f'<text x="54" y="{34 + middle}" text-anchor="end">{ranks[place][0]}</text>')
    end = side * len(ranks)
    pieces.append(f'<text class="name" x="{60 + end / 2}" y="10" {CENTRED}>{column_name} rank</text>')
    turned = f'transform="translate(16 {30 + end / 2}) rotate(-90)"'
    pieces.append(f'<text class="name" {turned} {CENTRED}>{row_name} rank</text>')
    wide = max(70 + end, 200)
    inside = _svg(wide, 36 + end, f"{unit} per pair of ranks", "".join(pieces))
    return f'<div class="matrix" style="max-width:{1.25 * wide:.0f}px">{inside}</div>'


def _span(ranks: tuple[int, int]) -> str:
    return str(ranks[0]) if ranks[0] == ranks[1] else f"{ranks[0]} to {ranks[1]}"


def _fit(count: int) -> str:
    """A count that fits into a cell."""
    if count < 100_000:
        return f"{count:,}"
    return f"{count / 1e6:.3g}M" if count >= 1e6 else f"{count / 1e3:.0f}k"
