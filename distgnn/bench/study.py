"""`dg.study`, and what `distgnn bench` runs: what does avoiding communication cost, and what does it buy?

```
study(data, algorithms, ranks, networks)
  ├─ cut_of                for each number of ranks, from the cache of cuts         distgnn/fitting/source.py
  └─ run_study
       ├─ take_turns       epochs of all algorithms, in turn, on ranks              turns.py
       ├─ predict_epochs   the same epochs over each network, where an extra can    turns.py
       ├─ fit              --runs seeds of each algorithm, with --accuracy          distgnn/fitting/fit.py
       └─ StudyResult      a row for each algorithm, number of ranks and network    result.py
```
Each piece of work is kept as soon as it is done (result.py).
"""

import contextlib
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from distgnn.bench.contenders import Contender, parse_contenders
from distgnn.bench.result import HERE, Kept, Measured, StudyResult, rows_of
from distgnn.bench.turns import predict_epochs, take_turns
from distgnn.config import CutConfig, ModelConfig, Settings
from distgnn.config.extras import attached, here
from distgnn.config.option import options_of
from distgnn.config.settings import describe_graph
from distgnn.errors import InputError
from distgnn.fitting.fit import fit
from distgnn.fitting.keywords import read_keywords
from distgnn.fitting.progress import compiling
from distgnn.fitting.result import load_result
from distgnn.fitting.source import cut_of, is_parts
from distgnn.partition import read_manifest
from distgnn.system.calls.launch import call_on_ranks, check_ranks
from distgnn.system.output import say
from distgnn.system.processor import available_cores, machine, threads_per_rank
from distgnn.train.checkpoint.identity import difference

ALGORITHMS = ("cd-0", "cd-5", "cd-5/int8")
OF_CUT = ("num_parts", "method", "replication_factor", "exchange_rows")
SIZES = ("num_nodes", "num_arcs")
ONE_RUN = {"resume": True, "patience": 0, "overwrite": False}


@dataclass(frozen=True)
class Plan:
    """What a study is asked for.

    Args:
        parts: partition folders of one graph, each for another number of ranks; base: settings of all algorithms, with
            the number of seeds; rounds: turns of each algorithm; accuracy: train to the end, too; tolerance: how far
            below cd-0's final metric the target is; emulate: measure on emulated networks, too; hosts: of the ranks.
    """

    parts: list[str]
    contenders: list[Contender]
    networks: list[str]
    base: Settings = field(default_factory=Settings)
    rounds: int = 4
    accuracy: bool = False
    tolerance: float = 0.01
    emulate: bool = False
    threads: int | None = None
    hosts: Sequence[str] | str | None = None
    command: str | list[str] = "dg.study"

    def checked(self) -> "Plan":
        """Itself. Raises: InputError for the first thing that cannot be studied, before anything starts."""
        self.base.checked()
        if self.base.train.task != "node":
            raise InputError(f"a study is of classes of vertices: task {self.base.train.task} is not measured")
        if self.rounds < 1:
            raise InputError(f"rounds is {self.rounds}: expected at least 1")
        if not 0 <= self.tolerance < 1:
            raise InputError(f"tolerance is {self.tolerance}: expected a share of the metric, as 0.01")
        for contender in self.contenders:
            contender.settings(self.base)
        if not self.networks:
            raise InputError("no networks: expected here, or names such as 1gbit")
        self.parsed_networks()
        manifests = self.manifests()
        first, *others = (describe_graph(one) | {name: one[name] for name in SIZES} for one in manifests)
        for folder, other in zip(self.parts[1:], others, strict=True):
            for name in first:
                if other.get(name) != first[name]:
                    said = f"{name} is {str(other.get(name))[:60]} there, {str(first[name])[:60]} in {self.parts[0]}"
                    raise InputError(f"{folder} is of another graph: {said}")
        counts = [manifest["num_parts"] for manifest in manifests]
        if len(set(counts)) < len(counts):
            raise InputError(f"the folders have {counts} parts: a study takes one cut for each number of ranks")
        for num_ranks in counts:
            check_ranks(num_ranks, self.hosts)
        if self.parsed_networks() and (1 in counts or self.hosts):
            raise InputError("other networks are predicted for 2 ranks or more of this machine: take --network here")
        if self.emulate and not (self.parsed_networks() and any(attached("emulate"))):
            raise InputError(f"emulate is of other networks than here, as --network 1gbit, by an extra ({here()})")
        return self

    def manifests(self) -> list[dict[str, Any]]:
        return [read_manifest(folder) for folder in self.parts]

    def parsed_networks(self) -> dict[str, Any]:
        """The networks but "here". Raises: InputError for what is none, and where no extra predicts."""
        others = [name for name in self.networks if name != HERE]
        parse = next(attached("network"), None)
        if others and parse is None:
            raise InputError(f"network {others[0]!r}: no extra predicts other networks ({here()})")
        return {name: parse(name) for name in others} if parse is not None else {}

    def asked(self) -> dict[str, Any]:
        """What the measured numbers depend on, by words of a message; further networks may be added."""
        settings = asdict(self.base)
        return {
            "graph or cut": [manifest["sha256"] for manifest in self.manifests()],
            "list of algorithms": [one.name for one in self.contenders],
            "model": settings["model"],
            "training": [settings["train"], settings["run"], settings["schedule"]],
            "number of rounds": self.rounds,
            "number of threads": self.threads,
            "list of hosts": self.hosts if self.hosts is None or isinstance(self.hosts, str) else list(self.hosts),
        }


def study(
    data: Any,
    model: str | ModelConfig = "sage",
    ranks: Sequence[int] = (2, 4),
    *,
    algorithms: Sequence[str] = ALGORITHMS,
    networks: Sequence[str] = (HERE,),
    runs: int = 1,
    epochs: int = 200,
    accuracy: bool = True,
    tolerance: float = 0.01,
    rounds: int = 4,
    emulate: bool = False,
    out: str | Path | None = None,
    partition: CutConfig | None = None,
    split: tuple[float, float, float] | None = None,
    seed: int = 0,
    threads: int | None = None,
    data_root: str | Path | None = None,
    quiet: bool = False,
    **options: Any,
) -> StudyResult:
    """Measure what algorithms cost and what accuracy they reach, side by side on one graph.

    Args:
        data: as of `dg.fit`; it is cut once for each number of ranks, into the cache of cuts. Or a partition folder, or
            a list of them; then `ranks` are their parts.
        model: a name or `ModelConfig`. ranks: numbers of processes on this machine.
        algorithms: as "cd-0", "cd-5/int8", and names of extras; cd-0 is always among them.
        networks: "here" is measured; others, as "1gbit", are predicted.
        runs: seeds of each training; epochs: of each; accuracy: train to the end at all.
        tolerance: the target metric is cd-0's final one less this.
        rounds: turns of 3 epochs of each algorithm. emulate: measure on networks emulated here, too, where you may.
        out: folder that keeps what is finished, tables and figures; a call with the same arguments goes on there.
        partition, split, seed, threads, data_root, quiet, options: as of `dg.fit`.
    Raises: InputError for what cannot be studied, before anything is measured.
    Example:
        >>> import distgnn
        >>> found = distgnn.study("communities:nodes=200", ranks=[1], algorithms=["cd-0"], epochs=2, quiet=True)
        >>> found.rows[0]["speedup_vs_exact"], len(found.to_pandas())
        (1.0, 1)
    """
    for name in ("algorithm", "run_dir", "resume", "patience", "hosts"):
        if name in options:
            raise InputError(f"study takes no {name}: see its algorithms, out and epochs")
    given = {"eval_every": 10} | options | {"seed": seed, "epochs": epochs, "runs": runs}
    if not isinstance(model, str | ModelConfig):
        raise InputError("study is of models by name: give a name or a ModelConfig")
    base = read_keywords(model, given).settings
    contenders = parse_contenders(list(algorithms))
    folders = list(data) if isinstance(data, list | tuple) else [data]
    with contextlib.ExitStack() as stack:
        if all(is_parts(folder) for folder in folders):
            parts = [str(folder) for folder in folders]
        else:
            tell = (lambda line: None) if quiet else say
            cuts = [cut_of(data, check_ranks(count), partition, split, seed, data_root, tell) for count in ranks]
            parts = [stack.enter_context(cut).folder for cut in cuts]
        plan = Plan(parts, contenders, list(networks), base, rounds, accuracy, tolerance, emulate, threads)
        return run_study(plan.checked(), out, not quiet)


def run_study(plan: Plan, out: str | Path | None, speak: bool = True) -> StudyResult:
    """Measure what is not kept yet, and write tables and figures into `out` (None: nothing stays)."""
    with contextlib.ExitStack() as stack:
        place = out or stack.enter_context(tempfile.TemporaryDirectory(prefix=".distgnn-study-"))
        kept = Kept(Path(place), plan.asked())
        kept.open()
        stack.callback(kept.close)
        result = _measured(plan, kept, speak)
        if out is not None:
            result.save(out)
    return result


def _measured(plan: Plan, kept: Kept, speak: bool) -> StudyResult:
    networks, manifests = plan.parsed_networks(), plan.manifests()
    works = [one for one in plan.contenders if not one.suppressed]
    emulated = networks if plan.emulate else {}
    total = len(plan.parts) * (1 + len(emulated) + bool(networks) + len(works) * plan.accuracy)
    measured: list[Measured] = []
    done = 0
    with compiling(speak):

        def get(name: str, make: Callable[[], Any], holds: Callable[[Any], bool] = lambda found: True) -> Any:
            nonlocal done
            found = kept.get(name, make, holds)
            done += 1
            if speak:
                say(f"measured {done}/{total}  {name}", "")
            return found

        for parts, manifest in zip(plan.parts, manifests, strict=True):
            count = manifest["num_parts"]
            others = {
                name: get(f"emulated-{count}-{name}", partial(_turns, plan, parts, count, network))
                for name, network in emulated.items()  # first: rights may be missing
            }
            measured.append(Measured(count, get(f"turns-{count}", partial(_turns, plan, parts, count)), others))
            found = difference(measured[0].turns["graph"], measured[-1].turns["graph"])
            if found:
                raise InputError(f"{parts} is of another graph than {plan.parts[0]}: {found}")
        for one, parts in zip(measured, plan.parts, strict=True):
            if networks:
                make = partial(_predictions, plan, parts, one.ranks, works, networks)
                one.predicted = get(f"predicted-{one.ranks}", make, partial(_predicted, networks))
        for one, parts in zip(measured, plan.parts, strict=True):
            for contender in works if plan.accuracy else ():
                name = f"{one.ranks}-{contender.name}"
                make = partial(_trained, plan, parts, contender, kept.run_folder(name))
                one.trained[contender.name] = get(f"trained-{name}", make)
                kept.drop_run(name)
    first = manifests[0]
    about = {
        "machine": machine(),
        "versions": measured[0].turns["versions"],
        "command": plan.command,
        "graph": first["name"],
        "num_nodes": first["num_nodes"],
        "num_arcs": first["num_arcs"],
        "cuts": [{key: manifest[key] for key in OF_CUT} for manifest in manifests],
        "settings": plan.base.sections(),
        "tolerance": plan.tolerance,
        "lines": list(dict.fromkeys(line for one in measured for line in one.turns["lines"])),
    }
    return StudyResult(rows_of(measured, plan.networks, plan.tolerance), about)


def _turns(plan: Plan, parts: str, count: int, network: Any = None) -> Any:
    """Epochs of all algorithms in turn, here or on an emulated network."""
    job = parts, plan.contenders, plan.base, plan.rounds
    if network is None:
        return call_on_ranks(take_turns, job, count, threads=plan.threads, hosts=plan.hosts)[0]
    with next(attached("emulate"))(network, count) as nodes:
        threads = plan.threads or threads_per_rank(count)
        return call_on_ranks(take_turns, job, None, threads=threads, hosts=nodes.hosts)[0]


def _predictions(plan: Plan, parts: str, count: int, works: list[Contender], networks: dict[str, Any]) -> Any:
    """Of each algorithm by name, each network by name: an epoch there, and the network."""
    threads = plan.threads or threads_per_rank(count)
    at_once = max(1, min(count, available_cores() // threads))
    job = parts, [one.settings(plan.base) for one in works], list(networks.values()), at_once
    found = call_on_ranks(predict_epochs, job, count, threads=threads)[0]
    return {
        contender.name: {
            name: one | {"network": networks[name].as_dict()} for name, one in zip(networks, each, strict=True)
        }
        for contender, each in zip(works, found, strict=True)
    }


def _predicted(networks: dict[str, Any], found: Any) -> bool:
    """Are all networks predicted, as they are now?"""
    return all(
        each.get(name, {}).get("network") == network.as_dict()
        for each in found.values()
        for name, network in networks.items()
    )


def _trained(plan: Plan, parts: str, contender: Contender, run: Path) -> dict[str, Any]:
    """The curves of all seeds, and the peak of memory while the first of them was trained."""
    settings = contender.settings(plan.base)
    if not (run / "summary.json").is_file():
        options = options_of(settings.train) | options_of(settings.run) | options_of(settings.schedule) | ONE_RUN
        options |= {"run_dir": str(run)}
        fit(parts, settings.model, threads=plan.threads, hosts=plan.hosts, quiet=True, **options)
    found = load_result(run)
    results = found if plan.base.run.runs > 1 else [found]
    names = ("epoch", "loss", "test_metric")
    curves = [
        [{key: record[key] for key in names} for record in one.history if "test_metric" in record] for one in results
    ]
    summary = results[0].summary
    return {"curves": curves, "metric": summary["metric"], "peak_rss_bytes": max(summary["peak_rss_bytes"])}
