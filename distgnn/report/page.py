"""The page: one HTML text with its style and figures inside; it loads nothing and runs nothing.

The same inputs give the same bytes: there is no clock and no random name in it.
"""

from __future__ import annotations

from typing import Any

import distgnn
from distgnn.report.benches import bench_section
from distgnn.report.html import plain
from distgnn.report.partitions import partition_section
from distgnn.report.read import Inputs
from distgnn.report.runs import runs_section
from distgnn.report.style import style_sheet


def make_page(inputs: Inputs) -> str:
    """The whole page, as text that UTF-8 can hold."""
    runs = runs_section(inputs)
    benches = [bench_section(bench, place) for place, bench in enumerate(inputs.benches)]
    partitions = [partition_section(parts, place) for place, parts in enumerate(inputs.parts)]
    found: list[Any] = [*inputs.runs, *inputs.benches, *inputs.parts]
    title = f"DistGNN report: {', '.join(one.name for one in found)}"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1"><link rel="icon" href="data:,">'
        f"<title>{plain(title)}</title><style>{style_sheet()}</style></head><body>"
        f"<h1>DistGNN report</h1>{_contents(inputs)}"
        f"<main>{runs}{''.join(benches)}{''.join(partitions)}</main>"
        f"<footer>Written by distgnn {plain(distgnn.__version__)} from the files named above; every number is theirs. "
        "Full-batch training: each epoch is one step over the whole graph, whose parts lie on the ranks (processes). "
        "</footer></body></html>\n"
    )


def _contents(inputs: Inputs) -> str:
    """A sentence on what is here, and a link to each section."""
    counts = ((len(inputs.runs), "run"), (len(inputs.benches), "benchmark"), (len(inputs.parts), "partition"))
    named = [f"{count} {name}{'s' * (count != 1)}" for count, name in counts if count]
    links = [("runs", "Runs")] if inputs.runs else []
    links += [(f"bench-{place}", f"Benchmark {bench.name}") for place, bench in enumerate(inputs.benches)]
    links += [(f"parts-{place}", f"Partition {parts.name}") for place, parts in enumerate(inputs.parts)]
    shown = "".join(f'<a href="#{anchor}">{plain(name)}</a>' for anchor, name in links)
    return f"<p>{', '.join(named)}.</p><nav>{shown}</nav>"
