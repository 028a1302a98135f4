"""Settings of a run as dataclasses, checked before anything starts. Needs neither torch nor MPI."""

from distgnn.config.cut import CutConfig
from distgnn.config.model import ALL_MODELS, EDGE_MODELS, MODELS, NORMS, Block, ModelConfig, check_graph_has
from distgnn.config.option import DTYPES, check_choice, did_you_mean
from distgnn.config.run import LaunchConfig, RunConfig, num_threads
from distgnn.config.schedule import WIRES, Algorithm, Schedule, row_bytes
from distgnn.config.settings import Settings, check_types, parse_sections, read_sections, read_settings
from distgnn.config.together import ATTENTION_MODELS, DEEP_MODELS, UNWEIGHTED_MODELS
from distgnn.config.train import TrainConfig

__all__ = [
    "ALL_MODELS", "ATTENTION_MODELS", "DEEP_MODELS", "DTYPES", "EDGE_MODELS", "MODELS", "NORMS", "UNWEIGHTED_MODELS",
    "WIRES", "Algorithm", "Block", "CutConfig", "LaunchConfig", "ModelConfig", "RunConfig", "Schedule",
    "Settings", "TrainConfig", "check_choice", "check_graph_has", "check_types", "did_you_mean",
    "num_threads", "parse_sections", "read_sections", "read_settings", "row_bytes",
]  # fmt: skip
