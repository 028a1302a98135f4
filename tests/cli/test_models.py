"""Each model, with and without edge weights, and each task trains from the command line."""

import json
import subprocess
import sys

import numpy as np
import pytest

from distgnn.config import MODELS, UNWEIGHTED_MODELS
from distgnn.config.task import TASKS
from distgnn.datasets import GraphData
from distgnn.partition import partition_graph

NUM_NODES, NUM_EDGES = 24, 60
# A task takes rows of vertices, whatever model made them: a model is tried with two of them, one with edge weights.
RUNS = [(model, False, TASKS[number % len(TASKS)]) for number, model in enumerate(MODELS)]
RUNS += [(model, True, ("node", "link")[number % 2]) for number, model in enumerate(MODELS)]


def graph_for(task: str) -> GraphData:
    """A graph with edge weights, features and types, and with what the task predicts."""
    random = np.random.default_rng(0)
    edges = random.integers(0, NUM_NODES, (NUM_EDGES, 2))
    arrays = {"node_values": random.random((NUM_NODES, 1))} if task == "regression" else {}
    if task.startswith(("edge", "link")):
        arrays = {f"{split}_edges": edges[place::3] for place, split in enumerate(("train", "valid", "test"))}
    if task.startswith("edge"):
        arrays |= {
            f"{name[:-1]}_labels": random.integers(0, 3, len(rows)) if task == "edge" else random.random(len(rows))
            for name, rows in arrays.items()
        }
    return GraphData.from_arrays(  # links come again: what is predicted may stay among the edges
        edges,
        NUM_NODES,
        directed=False,
        feats=random.standard_normal((NUM_NODES, 5)),
        labels=random.integers(0, 3, NUM_NODES),
        edge_weight=random.random(NUM_EDGES) + 0.5,
        edge_feats=random.standard_normal((NUM_EDGES, 3)),
        edge_types=random.integers(0, 2, NUM_EDGES),
        **{name: np.arange(NUM_NODES)[place::3] for place, name in enumerate(("train", "valid", "test"))},
        held_out=False,
        **arrays,
    )


RUN_ALL = """
import contextlib, io, json, sys
from distgnn.cli import main

for words in json.load(sys.stdin):
    sys.argv = ["distgnn", *words]
    with contextlib.redirect_stderr(io.StringIO()) as err:
        code = main()
    print(json.dumps([code, err.getvalue()]))
"""


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    """(exit code, standard error) of each run: one after the other in a process that has imported nothing before."""
    folder = tmp_path_factory.mktemp("models")
    for task in TASKS:
        partition_graph(graph_for(task), 1, folder / task)
    shared = "--hidden-feats 8 --num-layers 2 --num-heads 2 --epochs 1 --quiet --run-dir".split()
    words = []
    for model, weighted, task in RUNS:
        run_dir = str(folder / f"{model}-{weighted}-{task}")
        asked = ["--model", model, "--task", task, *(["--weighted"] if weighted else [])]
        words.append(["train", str(folder / task), *asked, *shared, run_dir])
    command = [sys.executable, "-c", RUN_ALL]
    done = subprocess.run(command, input=json.dumps(words), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return dict(zip(RUNS, map(json.loads, done.stdout.splitlines()), strict=True))


@pytest.mark.slow
@pytest.mark.parametrize(("model", "weighted", "task"), RUNS)
def test_every_model_and_task_is_trained(outcomes, model, weighted, task):
    code, err = outcomes[model, weighted, task]
    if weighted and model in UNWEIGHTED_MODELS:
        assert (code, err.count("\n")) == (2, 1) and "takes no edge weights" in err, err
    else:
        assert code == 0, err
