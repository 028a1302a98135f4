"""Run the examples in docstrings of public names: `python tests/house/run_examples.py [NAME ...]`, as `dg.nn.SAGEConv`.

An example finds, in an empty folder, `dg`, `torch`, `np`, and

    data       GraphData of 60 vertices: 8 features, 4 classes, 3 edge features, 2 relations, 2 vertex types
    parts      its partition folder, of one part
    links      one whose edges are split into training, validation and test pairs
    molecules  one of 20 graphs of 3 vertices each
    run        the run folder of a model that was trained on it
    graph      dg.load("parts")
"""

import doctest
import inspect
import os
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

import distgnn as dg
from distgnn.config import Settings

SPEC = "communities:nodes=60,communities=4,avg_degree=6,feats=8,classes=4,seed=1"


def public_names() -> dict[str, Any]:
    """Each function and class of `dg`, `dg.nn` and `dg.ops`, by its name there."""
    places = {"dg": dg, "dg.nn": dg.nn, "dg.ops": dg.ops}
    names = {f"{place}.{name}": getattr(module, name) for place, module in places.items() for name in module.__all__}
    return {name: one for name, one in names.items() if callable(one)}


def without_example() -> list[str]:
    """Public names whose own docstring has no example; a class without a docstring would show its base's."""
    return [name for name, one in public_names().items() if ">>>" not in _own_docstring(one)]


def _own_docstring(one: Any) -> str:
    return (vars(one).get("__doc__") if inspect.isclass(one) else one.__doc__) or ""


def make_world() -> dict[str, Any]:
    """What examples start from, in the working folder."""
    import torch

    random, quiet = np.random.default_rng(0), {"say": None}
    data = dg.load_graph(SPEC)
    data.name = "communities"
    data.edge_feats = random.standard_normal((len(data.edges), 3)).astype(np.float32)
    data.edge_types, data.node_types = random.integers(0, 2, len(data.edges)), random.integers(0, 2, data.num_nodes)
    dg.partition_graph(data.check(), 1, "parts", **quiet)
    dg.partition_graph(dg.load_graph(SPEC).split_links(0.1, 0.1), 1, "links", **quiet)
    small = dg.GraphData.from_arrays([(v, v + 1) for v in range(60) if v % 3 < 2], 60, False, feats=data.feats)
    small.graph_ids = np.arange(60) // 3
    dg.partition_graph(small.check(), 1, "molecules", **quiet)
    graph = dg.load("parts", say=None)
    settings = Settings(model=dg.ModelConfig(hidden_feats=8, num_layers=2), train=dg.TrainConfig(epochs=1, log=None))
    about = settings.sections() | {"data": {"graph": dg.partition.read_manifest("parts")["graph"]}}
    model = dg.nn.model_for(settings.model, graph)
    dg.Trainer(model, graph, replace(settings.train, run_dir="run"), describe=about).fit()
    return {"dg": dg, "torch": torch, "np": np, "data": data, "graph": graph}


def examples(names: list[str]) -> Iterator[doctest.DocTest]:
    """Those of public names, and of the methods of public classes."""
    finder = doctest.DocTestFinder(exclude_empty=True)
    for name, one in public_names().items():
        if not names or name in names:
            module = inspect.getmodule(inspect.unwrap(one))
            yield from (found for found in finder.find(one, name, module=module, globs={}) if found.examples)


def main(names: list[str]) -> int:
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        world, runner = make_world(), doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
        for test in examples(names):
            world["torch"].manual_seed(0)
            test.globs.update(world)
            runner.run(test)
        os.chdir(os.sep)
    print(f"{runner.tries} lines of examples, {runner.failures} wrong")
    return min(runner.failures, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
