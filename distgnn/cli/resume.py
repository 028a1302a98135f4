"""`--resume`: options that are not given on the command line are those the run was started with."""

from pathlib import Path

import typer

from distgnn.config import TrainConfig

OF_MODEL = {"name": "model"}  # settings whose option has another name
NEVER_TAKEN = ("run_dir", "overwrite", "resume")


def given_options(context: typer.Context) -> set[str]:
    """Names of the options that stand on the command line."""
    return {name for name in context.params if context.get_parameter_source(name).name == "COMMANDLINE"}


def take_saved(run_dir: str, given: set[str], config: TrainConfig, settings: dict) -> None:
    """Replace in `config` and `settings` what is not `given` by what the run's config.toml says; nothing where it has
    none.

    Raises: RunError where it is damaged.
    """
    from distgnn.train.run.run_folder import check_types, read_config

    if not (Path(run_dir) / "config.toml").is_file():
        return
    saved = read_config(run_dir)
    check_types(run_dir, "train", saved.get("train", {}), config.as_dict() | {"metric": ""})
    for section in ("model", "run"):
        check_types(run_dir, section, saved.get(section, {}), settings[section])
    for name, value in saved.get("train", {}).items():
        if hasattr(config, name) and name not in given and name not in NEVER_TAKEN:
            setattr(config, name, value)
    for section in ("model", "run"):
        for name, value in saved.get(section, {}).items():
            if name in settings[section] and OF_MODEL.get(name, name) not in given:
                settings[section][name] = value
