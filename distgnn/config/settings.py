"""All settings of a run together, and the way back: what a run's config.toml says becomes settings again.

| section of config.toml | dataclass |
|---|---|
| [train] | TrainConfig |
| [model] | ModelConfig |
| [run] | RunConfig and Schedule |
| [data] | none: facts about the graph and the partition, which are compared |
"""

import sys
from collections.abc import Mapping, Set
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from distgnn.config.extras import touched
from distgnn.config.model import ModelConfig, check_graph_has
from distgnn.config.option import did_you_mean, option_name, options_of, wrong_kinds
from distgnn.config.run import RunConfig
from distgnn.config.schedule import Algorithm, Schedule
from distgnn.config.task import check_graph_for, check_training_graph, of_target
from distgnn.config.together import DEEP_MODELS, TYPED_MODELS, UNWEIGHTED_MODELS, check_together
from distgnn.config.train import TrainConfig
from distgnn.errors import InputError, RunError
from distgnn.system.atomic import read_text

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

SECTIONS = ("train", "model", "data", "run")
LARGEST_INT = 2**63 - 1
SECTION_OF = {"train": "train", "model": "model", "run": "run", "schedule": "run"}
OF_GRAPH = ("dtype", "cache_first", "transform_first", "feat_norm")  # of RunConfig, beside the algorithm
OF_ONE_RUN = ("run_dir", "overwrite", "resume", "offload")  # never taken from another run


@dataclass(frozen=True)
class Settings:
    """What `distgnn train` is asked to do."""

    train: TrainConfig = field(default_factory=TrainConfig)
    model: ModelConfig = field(default_factory=ModelConfig)
    run: RunConfig = field(default_factory=RunConfig)
    schedule: Schedule = field(default_factory=Schedule)

    @property
    def _groups(self) -> tuple[Any, ...]:
        return self.train, self.model, self.run, self.schedule

    def checked(self) -> "Settings":
        """The same settings, with `wire_backward` filled in.

        Raises: InputError for the first setting that makes no sense, alone or beside another.
        """
        self.train.check()
        algorithm = self.run.check()
        self.schedule.check(algorithm)
        self.model.check()
        check_together(**self._known())
        schedule = replace(self.schedule, wire_backward=self.schedule.wires[1])
        return replace(self, schedule=schedule)

    def _known(self) -> dict[str, Any]:
        """All settings by the names of their options, as rules look at them."""
        algorithm = self.run.check()
        known: dict[str, Any] = {name: value for group in self._groups for name, value in options_of(group).items()}
        known |= {"algorithm": algorithm, "exact": algorithm.exact and self.schedule.exact}
        return known | {"by_arc": self.model.by_arc, "is_bare": self.model.around.is_bare}

    def with_task(self, graph: dict[str, Any], given: Set[str]) -> "Settings":
        """With task regression where none is given, and the vertices of the graph have values in place of classes."""
        graph = of_target(graph, self.train.target)
        if "task" in given or self.train.task != "node" or graph["labels"] or not graph.get("num_values"):
            return self
        return replace(self, train=replace(self.train, task="regression"))

    def knows_types(self, graph: dict[str, Any], by_name: bool = True) -> bool:
        """Does the run see the types and relations of a graph? The models for one type see one vertex set."""
        return bool(graph.get("types")) and (not by_name or self.model.name in TYPED_MODELS)

    def check_types(self, graph: dict[str, Any], by_name: bool = True) -> bool:
        """Raise InputError for settings that do not go with the types of a graph; returns `knows_types`."""
        typed, own = self.knows_types(graph, by_name), any(map(touched, self._groups))
        known = {"typed": typed, "of_extras": own, "graph": of_target(graph, self.train.target)}
        check_together(**self._known(), **known)
        return typed

    def check_graph(self, graph: dict[str, Any], by_name: bool = True) -> None:
        """Raise InputError where the model needs what the graph (of a partition's manifest) does not have.

        Args: by_name: the model is the one of these settings, not a user's own.
        """
        num_feats, typed = graph["num_feats"], self.check_types(graph, by_name)
        graph = of_target(graph, self.train.target)
        if not typed:
            graph["num_feats"] = num_feats
        if self.model.weighted and not graph["edge_weight"]:
            raise InputError("--weighted needs edge weights: this partition has none")
        bad = graph.get("nonpositive_weights", 0)
        if self.model.weighted and bad and self.model.name in DEEP_MODELS:
            raise InputError(
                f"--weighted of {self.model.name} divides by the root of sums of edge weights: {bad} weights of this "
                "graph are 0 or negative as float32; choose another model, or leave --weighted out"
            )
        check_graph_for(self.train.task, graph)
        check_training_graph(self.train, graph)
        if not typed:
            check_graph_has(self.model.name, graph.get("num_edge_feats", 0), graph.get("num_relations", 0))

    def weights_left_out(self, graph: dict[str, Any]) -> str:
        """The line on edge weights of a graph that the model does not use; empty where there are none, or it does."""
        if self.model.weighted or not graph["edge_weight"]:
            return ""
        other = UNWEIGHTED_MODELS.get(self.model.name)
        what = f"model {other} with --weighted" if other else "--weighted"
        return f"caution: {self.model.name} leaves out the edge weights; {what} (weighted=True) multiplies rows by them"

    def graph_options(self) -> dict[str, Any]:
        """Keyword arguments of `load` for a graph that is trained as these settings say."""
        run = {name: getattr(self.run, name) for name in OF_GRAPH}
        held: dict[str, Any] = {"sparse_feats": self.model.takes_sparse_feats, "inductive": self.train.inductive}
        held |= {"offload": self.train.offload}
        return run | asdict(self.schedule) | held | {"seed": self.train.seed}

    def with_options(self, options: Mapping[str, Any]) -> "Settings":
        """These settings with other values, by the names of their options."""
        groups = {name: getattr(self, name) for name in SECTION_OF}
        known = {name: {option_name(field): field.name for field in fields(group)} for name, group in groups.items()}
        changed = {
            name: replace(group, **{known[name][key]: value for key, value in options.items() if key in known[name]})
            for name, group in groups.items()
        }
        return replace(self, **changed)

    @property
    def algorithm(self) -> Algorithm:
        return Algorithm.parse(self.run.algorithm)

    def sections(self) -> dict[str, dict[str, Any]]:
        """[train], [model] and [run] of config.toml; the trainer fills in what [train] leaves open."""
        model = {name: value for name, value in asdict(self.model).items() if value is not None}
        return {"train": self.train.as_dict(), "model": model, "run": asdict(self.run) | asdict(self.schedule)}

    def with_saved(
        self, saved: dict[str, dict[str, Any]], file: str | Path, given: Set[str] = frozenset()
    ) -> "Settings":
        """These settings, with the values of a config.toml for all options that are not `given`.

        Raises: RunError for a value of the wrong kind. Unknown settings are left out (see `check_names`).
        """
        saved = {name: dict(saved.get(name, {})) for name in SECTIONS}
        if saved["run"].get("wire_backward") == saved["run"].get("wire"):
            saved["run"].pop("wire_backward", None)  # it follows --wire, which may be given
        taken = {}
        for name, section in SECTION_OF.items():
            own = getattr(self, name)
            check_types(file, section, saved[section], own)
            known = {one.name for one in fields(own) if option_name(one) not in given and one.name not in OF_ONE_RUN}
            values = {key: value for key, value in saved[section].items() if key in known}
            if "optimizer" in values and "lr" in known - set(values):
                values["lr"] = None  # that optimizer's own
            taken[name] = replace(own, **values)
        return Settings(**taken)


def read_settings(file: str | Path) -> Settings:
    """The settings in a run's config.toml: `read_settings("run/config.toml").train` is its TrainConfig.

    Raises: RunError where it cannot be read or a value is of the wrong kind; InputError for an unknown setting.
    Notes: `run_dir`, `overwrite` and `resume` belong to one run and are not taken.
    """
    saved = read_sections(file)
    check_names(saved, file)
    return Settings().with_saved(saved, file)


def check_names(saved: dict[str, dict[str, Any]], file: str | Path) -> None:
    """Raise InputError for the first section or setting that there is not."""
    known: dict[str, set[str]] = {name: set() for name in SECTIONS}
    for name, section in SECTION_OF.items():
        known[section] |= {one.name for one in fields(getattr(Settings(), name))}
    for section, values in saved.items():
        if section not in known:
            raise InputError(f"{file}: unknown section [{section}]{did_you_mean(section, known)}")
        for name in values if section != "data" else ():
            if name not in known[section]:
                raise InputError(f"{file}: [{section}] has no setting {name!r}{did_you_mean(name, known[section])}")


def check_same_graph(saved: dict[str, dict[str, Any]], graph: dict[str, Any], file: str | Path) -> None:
    """Raise InputError unless the [data] section is of this graph; another partition of it will do."""
    there = saved.get("data", {}).get("graph", {})
    if not isinstance(there, dict):
        raise InputError(f"{file} is damaged: [data] graph is no section")
    for name, value in there.items():
        if value != graph.get(name):
            raise InputError(
                f"{file} is of another graph: {name} is {str(value)[:40]} there, {graph.get(name, 'not set')} here"
            )


def describe_data(parts: str, manifest: dict[str, Any]) -> dict[str, Any]:
    """What config.toml keeps of the partition: enough to make the model, and the graph it was trained on, again."""
    return {"parts": str(Path(parts).resolve()), "checksum": manifest["sha256"], "graph": describe_graph(manifest)}


def describe_graph(manifest: dict[str, Any]) -> dict[str, Any]:
    names = ("name", "direction", "self_loops", "normalize_feats")
    return {name: manifest[name] for name in names if name in manifest} | manifest["graph"]


def read_sections(file: str | Path) -> dict[str, dict[str, Any]]:
    """The sections of a config.toml. Raises: RunError when it cannot be read."""
    try:
        return parse_sections(read_text(file))
    except (ValueError, RecursionError, OSError) as error:
        reason = error.strerror if isinstance(error, OSError) else " ".join(str(error).split())
        raise RunError(f"{file} cannot be read, or is damaged: {reason}") from error


def parse_sections(text: str) -> dict[str, dict[str, Any]]:
    """The sections of a config.toml from its text. Raises: ValueError, RecursionError where it has another form."""
    content = tomllib.loads(text)
    for name in SECTIONS:
        if not isinstance(content.get(name, {}), dict):
            raise ValueError(f"{name} is no section")
    return content


def check_types(file: str | Path, section: str, values: dict[str, Any], config: Any) -> None:
    """Raise RunError for a value that is of another kind than the field of `config` with its name."""
    wrong = {name for name, _ in wrong_kinds(config, values)}
    for name in (one.name for one in fields(config) if one.name in values):
        value = values[name]
        if name in wrong or (isinstance(value, int) and abs(value) > LARGEST_INT):
            raise RunError(f"{file} is damaged: [{section}] {name} is {str(value)[:40]!r}")
