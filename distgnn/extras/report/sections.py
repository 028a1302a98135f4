"""The page: its sections, in the template page.html."""

from pathlib import Path

import distgnn
from distgnn.extras.report.others import bench_section, output_section, partition_section
from distgnn.extras.report.page import plain
from distgnn.extras.report.read import Inputs
from distgnn.extras.report.runs import runs_section

MAKERS = {"benchmark": bench_section, "partition": partition_section, "output": output_section}


def make_page(inputs: Inputs) -> str:
    import jinja2

    sections = [runs_section(inputs["run"])] if inputs["run"] else []
    sections += [make(one) for kind, make in MAKERS.items() for one in inputs[kind]]
    counts = (f"{len(found)} {kind}{'s' * (len(found) != 1)}" for kind, found in inputs.items() if found)
    title = ", ".join(one.name for found in inputs.values() for one in found)
    surroundings = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    surroundings.filters["plain"] = plain
    template = surroundings.from_string(Path(__file__).with_name("page.html").read_text(encoding="utf-8"))
    words = {"title": title, "counts": ", ".join(counts), "version": distgnn.__version__}
    return template.render(sections=sections, **words) + "\n"
