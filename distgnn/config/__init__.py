"""Settings of a run as dataclasses, checked before anything starts. Needs neither torch nor MPI."""

from distgnn.config.algorithm import UPDATES, Algorithm
from distgnn.config.cut import CutConfig
from distgnn.config.exchange import ExchangeConfig
from distgnn.config.launch import CHECKPOINT_EVERY, LaunchConfig
from distgnn.config.model import (
    ATTENTION_MODELS,
    DEEP_MODELS,
    EDGE_MODELS,
    JUMPS,
    MODELS,
    NORMS,
    ONE_PASS_MODELS,
    UNWEIGHTED_MODELS,
    ModelConfig,
    check_graph_has,
)
from distgnn.config.options.choices import DTYPES, check_choice, did_you_mean
from distgnn.config.options.file import check_types, parse_sections, read_sections
from distgnn.config.run import RunConfig
from distgnn.config.schedule import REMOTE_RULES, WIRES, Schedule
from distgnn.config.settings import Settings, check_names, check_same_graph, read_settings
from distgnn.config.task import METRICS, TASKS
from distgnn.config.threads import num_threads
from distgnn.config.train import LR_SCHEDULES, TrainConfig

__all__ = [
    "ATTENTION_MODELS",
    "CHECKPOINT_EVERY",
    "DEEP_MODELS",
    "DTYPES",
    "EDGE_MODELS",
    "JUMPS",
    "LR_SCHEDULES",
    "METRICS",
    "MODELS",
    "NORMS",
    "ONE_PASS_MODELS",
    "REMOTE_RULES",
    "TASKS",
    "UNWEIGHTED_MODELS",
    "UPDATES",
    "WIRES",
    "Algorithm",
    "CutConfig",
    "ExchangeConfig",
    "LaunchConfig",
    "ModelConfig",
    "RunConfig",
    "Schedule",
    "Settings",
    "TrainConfig",
    "check_choice",
    "check_graph_has",
    "check_names",
    "check_same_graph",
    "check_types",
    "did_you_mean",
    "num_threads",
    "parse_sections",
    "read_sections",
    "read_settings",
]
