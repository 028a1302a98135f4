"""The keywords of `dg.fit`: all settings of `distgnn train`, and the arguments of the Trainer that are objects."""

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from distgnn.config import ALL_MODELS, ModelConfig, Settings, check_choice
from distgnn.config.cut import check_names
from distgnn.config.option import option_name, wrong_kinds
from distgnn.config.settings import SECTION_OF
from distgnn.errors import InputError

OBJECTS = ("optimizer", "scheduler", "loss", "metrics", "callbacks")  # of the Trainer
ONLY_HERE = ("recipe", "memory", "debug", "folds")  # further options of `distgnn train`, and of `fit`
NAMED = (  # arguments of `fit` itself
    "data", "model", "ranks", "epochs", "out", "partition", "split", "seed", "threads", "hosts", "data_root", "quiet",
)  # fmt: skip
OTHERS_WORDS = {  # what to write for words of other libraries whose nearest name here would mislead
    "the model's name is the argument model": "name",
    "write lr": "learning_rate",
    "write quiet=True for no lines": "verbose silent progress_bar enable_progress_bar",
    "it trains on CPUs: leave it out": "device accelerator gpus cuda amp backend",
    "write dtype": "precision mixed_precision bf16",
    "write ranks": "devices num_processes nprocs nproc_per_node world_size num_parts n_jobs num_workers",
    "write threads": "num_threads",
    "ranks, or hosts=[...] for several machines, are all it needs": "strategy num_nodes master_addr init_method",
    'each epoch is one step on the whole graph; batch="cluster:32" takes parts of it': (
        "batch_size num_neighbors fanouts sampler shuffle train_loader train_dataloaders datamodule"
    ),
    "write loss": "criterion loss_fn",
    "write patience": "early_stopping",
    "write resume=True; its checkpoint is in run_dir, or out": "ckpt_path resume_from_checkpoint",
    "write clip_grad": "gradient_clip_val max_grad_norm",
    "write split=(train, valid, test)": "train_size test_size val_size train_ratio val_ratio",
    "write seed": "random_state",
    "write partition=dg.CutConfig(...)": "self_loops add_self_loops undirected directed direction method cut parts",
    "write hidden_feats": "num_hidden",
    "widths of the first and last layer are the graph's": "in_channels out_channels in_feats out_feats num_classes",
    "it is a part of the data, as {'edge_index': ..., 'x': ..., 'y': ..., 'train_mask': ...}": (
        "x y edge_index edge_weight edge_attr features labels train_mask val_mask test_mask train_idx val_data"
    ),
}


@dataclass(frozen=True)
class Keywords:
    """What was asked for. Args: given: names of settings that were; objects: for the Trainer; more: of `ONLY_HERE`."""

    settings: Settings
    given: set[str]
    objects: dict[str, Any]
    more: dict[str, Any]


def read_keywords(model: Any, options: Mapping[str, Any]) -> Keywords:
    """Settings and objects from a model and keywords. Raises: InputError for a name that is none, with the nearest."""
    default = Settings()
    groups = {name: {option_name(one) for one in fields(getattr(default, name))} for name in SECTION_OF}
    known = [*dict.fromkeys(name for names in groups.values() for name in names)]
    for instead, words in OTHERS_WORDS.items():
        for name in options.keys() & set(words.split()):
            raise InputError(f"fit takes no {name}: {instead}")
    check_names(options, [*known, *OBJECTS, *ONLY_HERE, *NAMED])
    objects = {one: options[one] for one in OBJECTS if not isinstance(options.get(one), str | None)}
    values = {name: value for name, value in options.items() if name not in (*objects, *ONLY_HERE)}
    values = {name: value.item() if isinstance(value, np.generic) else value for name, value in values.items()}
    whole = isinstance(model, ModelConfig)  # then every option of it is given
    if isinstance(model, ModelConfig):
        clash = sorted(values.keys() & groups["model"])
        if clash:
            raise InputError(f"{clash[0]} is given twice: in the ModelConfig and by keyword")
        default, model = replace(default, model=model), model.name
    elif isinstance(model, str):
        check_choice("model", model, ALL_MODELS)
        values["model"] = model
    elif model is not None and values.keys() & groups["model"]:
        name = sorted(values.keys() & groups["model"])[0]
        raise InputError(f"{name} is of models by name: a module of your own has its sizes already")
    for group in SECTION_OF:
        for name, words in wrong_kinds(getattr(default, group), values):
            raise InputError(f"{name} is {values[name]!r}: expected {words}")
    _check_objects(objects)
    settings = default.with_options(values)
    if "optimizer" in values and "lr" not in values:
        settings = replace(settings, train=replace(settings.train, lr=None))  # type: ignore[arg-type]  # its own
    given = values.keys() | (groups["model"] if whole else set())
    more = {name: options[name] for name in ONLY_HERE if options.get(name) is not None}
    return Keywords(settings, given, objects, more)


def _check_objects(objects: Mapping[str, Any]) -> None:
    """Raise InputError for an object of the Trainer that has another form."""
    loss, metrics = objects.get("loss"), objects.get("metrics")
    if hasattr(objects.get("optimizer"), "param_groups"):
        raise InputError(
            "optimizer is of the model here, and ranks train a copy: give its class, as optimizer=torch.optim.Adam and "
            "lr=0.01, or a function of the parameters"
        )
    scheduler = objects.get("scheduler")
    if hasattr(scheduler, "step") and not isinstance(scheduler, type):
        raise InputError("scheduler is of an optimizer here: give scheduler=lambda optimizer: StepLR(optimizer, 10)")
    if not isinstance(objects.get("callbacks", ()), list | tuple):
        raise InputError(f"callbacks is a {type(objects['callbacks']).__name__}: give a list of dg.Callback objects")
    if metrics is not None and not isinstance(metrics, Mapping):
        raise InputError(
            f"metrics is a {type(metrics).__name__}: give a dict of names and functions of (graph, logits); accuracy, "
            'F1 and ROC-AUC need none (metric="f1")'
        )
    try:
        names = [] if loss is None else [*inspect.signature(loss).parameters][:2]
    except (TypeError, ValueError):
        names = []
    kind = loss if isinstance(loss, type) else type(loss)
    if names == ["input", "target"] or (loss is not None and kind.__module__.startswith("torch.nn.")):
        raise InputError(
            "loss is called as loss(graph, logits): write lambda graph, logits: "
            "criterion(logits[graph.train_mask], graph.labels[graph.train_mask])"
        )
