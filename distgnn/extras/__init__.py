"""Extras, each a folder that can be deleted: see "To add an extra" in docs/architecture.md."""

from distgnn import config as _settings  # noqa: F401  # first: it reads what each folder attaches
