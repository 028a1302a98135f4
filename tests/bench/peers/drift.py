"""Random training scripts with one statement made different on one rank: what share is caught, and at which step.

    distgnn run -n 3 tests/bench/peers/drift.py [SCRIPTS] [SEED]

Each script is run three times on all ranks: as it is, which nothing may stop; with one statement otherwise on one rank,
and the comparison on; the same with it off. Where the losses of the third run are those of the first, the difference
was harmless. Prints a table by statement: caught at the first step that it enters, later, never, harmless.
"""

import random
import sys
from collections import Counter, defaultdict
from typing import Any

import numpy as np
import torch
from mpi4py import MPI
from torch.nn import functional as F
from torch_geometric.nn import GATConv, GCNConv, GraphConv, SAGEConv

from distgnn.comm.ending.leaving import watched
from distgnn.errors import InputError, RunError
from distgnn.graph.face.row_graph import with_rows

sys.path.insert(0, str(__import__("pathlib").Path(__file__).resolve().parents[2] / "harness"))
from cut_graphs import dist_graph, random_graph

STEPS, OTHER_AT = 4, 1  # statements within a step become different at this one


class Net(torch.nn.Module):
    def __init__(self, script: Any, p: float, width: int):
        super().__init__()
        data, conv = script.data, script.conv
        self.first, self.last = conv(data.num_features, width), conv(width, int(data.num_classes))
        self.p = p

    def forward(self, x: Any, edge_index: Any) -> Any:
        return self.last(F.dropout(self.first(x, edge_index).relu(), self.p, self.training), edge_index)


class Script:
    """What statements change: settings before the model is made, and what happens in each step."""

    def __init__(self, source: Any, choice: random.Random):
        self.data = with_rows(dist_graph(source, watched(MPI.COMM_WORLD)))
        self.conv = choice.choice([GCNConv, SAGEConv, GATConv, GraphConv])
        self.kind = choice.choice([torch.optim.Adam, torch.optim.SGD, torch.optim.AdamW, torch.optim.RMSprop])
        self.settings: dict[str, Any] = {"lr": 0.01}
        self.p, self.width, self.smoothing, self.factor = 0.5, 8, 0.0, 1.0
        self.rows: list[Any] = []  # x -> x
        self.mask: Any = lambda step: self.data.train_mask
        self.before: list[Any] = []
        self.between: list[Any] = []
        self.weight: Any = None

    def run(self, statements: list[Any], odd: int | None) -> tuple[list[float], int]:
        """Losses, and steps that were taken. Args: odd: the statement that is another on this rank."""
        torch.manual_seed(0)
        self.steps = 0
        for place, statement in enumerate(statements):
            statement(self, place == odd)
        self.model = Net(self, self.p, self.width).double()
        self.optimizer = self.kind(self.model.parameters(), **self.settings)
        data, losses = self.data, []
        for step in range(STEPS):
            for act in self.before:
                act(step)
            self.optimizer.zero_grad()
            x = data.x
            for act in self.rows:
                x = act(x, step)
            chosen = self.mask(step)
            out = self.model(x, data.edge_index)[chosen]
            loss = F.cross_entropy(out, data.y[chosen], self.weight, label_smoothing=self.smoothing) * self.factor
            loss.backward()
            for act in self.between:
                act(step)
            self.optimizer.step()
            self.steps = step + 1
            losses.append(float(loss))
        losses += [float(one.detach().sum()) for one in self.model.parameters()]
        return losses, self.steps


def setting(name: str, usual: Any, other: Any) -> Any:
    def statement(script: Script, odd: bool) -> None:
        setattr(script, name, other if odd else usual)

    return statement


def lr(script: Script, odd: bool) -> None:
    script.settings["lr"] = 0.02 if odd else 0.01


def decay(script: Script, odd: bool) -> None:
    script.settings["weight_decay"] = 0.1 if odd else 0.0


def schedule(script: Script, odd: bool) -> None:
    def act(step: int) -> None:
        for group in script.optimizer.param_groups:
            group["lr"] = 0.01 * 0.5**step * (1.1 if odd and step >= OTHER_AT else 1)

    script.before.append(act)


def late_rate(script: Script, odd: bool) -> None:
    """Between the backward pass and the step."""

    def act(step: int) -> None:
        script.optimizer.param_groups[0]["lr"] = 0.01 * (2 if odd and step >= OTHER_AT else 1)

    script.between.append(act)


def by_rows(make: Any) -> Any:
    def statement(script: Script, odd: bool) -> None:
        act = make(script)
        script.rows.append(lambda x, step: act(x, odd and step >= OTHER_AT))

    return statement


def mask_by_name(script: Script, odd: bool) -> None:
    script.mask = lambda step: script.data["test_mask" if odd and step >= OTHER_AT else "train_mask"]


def own_split(script: Script, odd: bool) -> None:
    places = np.random.default_rng(7 if odd else 3).permutation(int(script.data.num_nodes))
    mask = torch.zeros(len(places), dtype=torch.bool)
    mask[torch.from_numpy(places[:20])] = True
    script.mask = lambda step: mask & (script.data.y >= 0)


def own_column(script: Script, odd: bool) -> None:
    script.data.extra = torch.full((int(script.data.num_nodes),), 2.0 if odd else 1.0, dtype=torch.float64)
    script.rows.append(lambda x, step: x * script.data.extra[:, None])


def class_weight(script: Script, odd: bool) -> None:
    script.weight = torch.tensor([1.0, 2.0, 3.0, 5.0 if odd else 4.0], dtype=torch.float64)


def weights(change: Any) -> Any:
    def statement(script: Script, odd: bool) -> None:
        def act(step: int) -> None:
            if step == OTHER_AT and odd:
                with torch.no_grad():
                    change(next(script.model.parameters()))

        script.before.append(act)

    return statement


def clip(script: Script, odd: bool) -> None:
    def act(step: int) -> None:
        most = 0.01 if odd and step >= OTHER_AT else 0.1
        torch.nn.utils.clip_grad_norm_(script.model.parameters(), most)

    script.between.append(act)


def evaluation(script: Script, odd: bool) -> None:
    script.before.append(lambda step: script.model.train(not (odd and step >= OTHER_AT)))


def seed(script: Script, odd: bool) -> None:
    script.before.append(lambda step: torch.manual_seed(step + 100 * (odd and step >= OTHER_AT)))


STATEMENTS: dict[str, tuple[Any, int]] = {  # name -> (statement, the step that it enters first)
    "lr": (lr, 0),
    "weight decay": (decay, 0),
    "lr by step": (schedule, OTHER_AT),
    "lr after backward": (late_rate, OTHER_AT),
    "dropout's p": (setting("p", 0.5, 0.6), 0),
    "width": (setting("width", 8, 12), 0),
    "label smoothing": (setting("smoothing", 0.0, 0.1), 0),
    "a factor of the loss": (setting("factor", 1.0, 1.5), 0),
    "class weights": (class_weight, 0),
    "a factor of rows": (by_rows(lambda s: lambda x, odd: x * (0.9 if odd else 0.8)), OTHER_AT),
    "a slope": (by_rows(lambda s: lambda x, odd: F.leaky_relu(x, 0.2 if odd else 0.1)), OTHER_AT),
    "a clamp": (by_rows(lambda s: lambda x, odd: x.clamp(-1, 1 if odd else 2)), OTHER_AT),
    "a power": (by_rows(lambda s: lambda x, odd: x.abs() ** (1.5 if odd else 2.0)), OTHER_AT),
    "an if": (by_rows(lambda s: lambda x, odd: x.tanh() if odd else x), OTHER_AT),
    "noise": (by_rows(lambda s: lambda x, odd: x + torch.full(x.shape[1:], 0.2 if odd else 0.1)), OTHER_AT),
    "columns": (by_rows(lambda s: lambda x, odd: torch.cat([x[:, :3], x[:, 2 if odd else 3 :][:, :4]], 1)), OTHER_AT),
    "ids": (by_rows(lambda s: lambda x, odd: x + x[torch.arange(len(x)).roll(2 if odd else 1)]), OTHER_AT),
    "a mean's factor": (by_rows(lambda s: lambda x, odd: x - x.mean(0) * (0.5 if odd else 1.0)), OTHER_AT),
    "torch.where": (by_rows(lambda s: lambda x, odd: torch.where(x > (0.1 if odd else 0.0), x, 0.0)), OTHER_AT),
    "norm": (by_rows(lambda s: lambda x, odd: F.normalize(x, p=1 if odd else 2, dim=1)), OTHER_AT),
    "draws": (by_rows(lambda s: lambda x, odd: x + (torch.randn_like(x), torch.randn_like(x))[odd]), OTHER_AT),
    "a mask by name": (mask_by_name, OTHER_AT),
    "an own split": (own_split, 0),
    "an own column": (own_column, 0),
    "a seed": (seed, OTHER_AT),
    "evaluation mode": (evaluation, OTHER_AT),
    "a weight": (weights(lambda one: one.data.view(-1)[0].add_(1.0)), OTHER_AT),
    "all weights": (weights(lambda one: one.mul_(1.01)), OTHER_AT),
    "weights in another order": (weights(lambda one: one.copy_(one.flip(0))), OTHER_AT),
    "a clip": (clip, OTHER_AT + 1),
}


def main() -> None:
    """Run the scripts and print the table, on rank 0."""
    count, first = (int(word) for word in (*sys.argv[1:], 100, 0)[:2])
    comm, found, alarms = MPI.COMM_WORLD, defaultdict(Counter), 0
    alike = watched(comm).crew.alike
    source, lines = random_graph(3), set()
    for number in range(first, first + count):
        choice = random.Random(number)
        names = choice.sample(list(STATEMENTS), 6)
        statements, odd = [STATEMENTS[name][0] for name in names], choice.randrange(6)
        enters, rank = STATEMENTS[names[odd]][1], choice.randrange(comm.size)
        usual, steps = _tried(source, number, statements, None, alike)
        alarms += usual is None
        mine = odd if comm.rank == rank else None
        given, steps = _tried(source, number, statements, mine, alike)
        if given is None:
            verdict = "first step" if steps <= enters else "later"
            lines.add(f"{names[odd]}: {_tried.said}")
        else:
            alike.wanted = False
            other, _ = _tried(source, number, statements, mine, alike)
            alike.wanted = True
            harmless = comm.allreduce(int(other is not None and np.array_equal(other, usual)), op=MPI.MIN)
            verdict = "harmless" if harmless else "never"
        found[names[odd]][verdict] += 1
    if comm.rank == 0:
        for name in sorted(found):
            print(f"{name:26}", *(f"{verdict} {times}" for verdict, times in sorted(found[name].items())), sep="  ")
        print("all", dict(sum(found.values(), Counter())), "of", count, "scripts; false alarms", alarms)


def _tried(source: Any, number: int, statements: list[Any], odd: int | None, alike: Any) -> tuple[Any, int]:
    script = Script(source, random.Random(number))
    try:
        return script.run(statements, odd)
    except (RunError, InputError) as error:
        _tried.said = str(error)  # type: ignore[attr-defined]
        return None, script.steps


main()
