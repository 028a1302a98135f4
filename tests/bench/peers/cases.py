"""The list of cases: a name, the kind it belongs to, its graph, and the function that runs on a `Peer`."""

import fnmatch
import importlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from peer import Peer

MODULES = sorted(path.stem for path in Path(__file__).parent.glob("cases_*.py"))


@dataclass(frozen=True)
class Case:
    """One script of a few lines.

    Args: kind: a row of the table of kinds; library: "pyg" or "dgl"; world: a name of `worlds.WORLDS`; random: draws of
        its own, so that several ranks are compared with one; changed: lines that a script changed, where it is one.
    """

    name: str
    kind: str
    run: Callable[[Peer], Any]
    library: str = "pyg"
    world: str = "web"
    random: bool = False
    changed: int | None = None


CASES: dict[str, Case] = {}


def add(case: Case) -> None:
    """A case more. Raises: ValueError for a name that is there."""
    if case.name in CASES:
        raise ValueError(f"two cases are called {case.name}")
    CASES[case.name] = case


def case(kind: str, name: str | None = None, **options: Any) -> Callable:
    """A function as a case; its name is the case's."""

    def keep(run: Callable[[Peer], Any]) -> Callable:
        add(Case(f"{kind}: {name or run.__name__.replace('_', ' ')}", kind, run, **options))
        return run

    return keep


def expressions(kind: str, texts: dict[str, Callable], **options: Any) -> None:
    """Cases of one expression of (peer, rows): its value, a loss of it, and the gradient of the rows."""
    for name, function in texts.items():
        add(Case(f"{kind}: {name}", kind, lambda peer, function=function: _with_gradient(peer, function), **options))


def calls(kind: str, texts: dict[str, Callable[[Peer], Any]], **options: Any) -> None:
    """Cases of one expression of the peer."""
    for name, run in texts.items():
        add(Case(f"{kind}: {name}", kind, run, **options))


def trainings(kind: str, models: dict[str, tuple[Callable, Callable]], **options: Any) -> None:
    """Cases that train a model. name -> (what makes it, its loss of (peer, model))."""
    for name, (make, loss) in models.items():

        def run(peer: Peer, make: Callable = make, loss: Callable = loss) -> Any:
            return peer.train(make(), lambda model: loss(peer, model))

        add(Case(f"{kind}: {name}", kind, run, **options))


def _with_gradient(peer: Peer, function: Callable) -> dict[str, Any]:
    rows = peer.x
    out = function(peer, rows)
    found = {"out": out}
    several = out if isinstance(out, (tuple, list)) else [out]
    floats = [one for one in several if isinstance(one, torch.Tensor) and one.requires_grad]
    if floats:
        loss = sum(torch.sin(one).sum() for one in floats)
        loss.backward()
        found |= {"loss": loss.item(), "gradient": rows.grad}
    return found


def load_cases() -> dict[str, Case]:
    """Every case, by name."""
    for module in MODULES:
        importlib.import_module(module)
    return CASES


def select(patterns: list[str]) -> list[Case]:
    """Cases whose name or kind fits one of the patterns (all without any)."""
    cases = list(load_cases().values())
    if not patterns:
        return cases
    return [one for one in cases if any(_fits(one, pattern) for pattern in patterns)]


def _fits(one: Case, pattern: str) -> bool:
    return pattern in one.name or fnmatch.fnmatch(one.name, pattern)
