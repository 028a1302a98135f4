"""The page: its sections, in the template page.html."""

from pathlib import Path
from typing import Any

import distgnn
from distgnn.extras.report.others import bench_section, output_section, partition_section
from distgnn.extras.report.page import plain
from distgnn.extras.report.read import Inputs
from distgnn.extras.report.runs import runs_section


def make_page(inputs: Inputs) -> str:
    import jinja2

    sections = [runs_section(inputs)] if inputs.runs else []
    sections += [bench_section(one) for one in inputs.benches]
    sections += [partition_section(one) for one in inputs.parts]
    sections += [output_section(one) for one in inputs.outputs]
    kinds: dict[str, list[Any]] = {"run": inputs.runs, "benchmark": inputs.benches}
    kinds |= {"partition": inputs.parts, "output": inputs.outputs}
    counts = (f"{len(found)} {kind}{'s' * (len(found) != 1)}" for kind, found in kinds.items() if found)
    title = ", ".join(one.name for found in kinds.values() for one in found)
    surroundings = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    surroundings.filters["plain"] = plain
    template = surroundings.from_string(Path(__file__).with_name("page.html").read_text(encoding="utf-8"))
    words = {"title": title, "counts": ", ".join(counts), "version": distgnn.__version__}
    return template.render(sections=sections, **words) + "\n"
