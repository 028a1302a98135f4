"""Fetch OGB's graphs through the `ogb` package: whole, or not at all."""

import csv
import importlib.util
import os
import shutil
import warnings
import zipfile
from pathlib import Path

from distgnn.datasets.ogb import LAYOUTS, is_ogb_folder
from distgnn.datasets.registry import NAMED, default_data_root
from distgnn.errors import GraphFormatError, InputError

DOWNLOADABLE = tuple(layout.name for layout in LAYOUTS.values())


def download(name: str, data_root: str | Path | None = None) -> Path:
    """Download and unpack a graph below the data root, if it is not there yet.

    Args:
        name: `ogbn-arxiv`, `ogbn-products`, `ogbn-proteins`, `ogbn-mag` or `ogbn-papers100M` (57 GB).
        data_root: the environment's DISTGNN_DATA, or `data`, if not given.
    Returns: the folder.
    Raises: InputError for an unknown name, without the `ogb` extra or without a network.
    Notes: nothing is left behind when it fails; ogb shows a progress bar on standard error.
    """
    if name not in DOWNLOADABLE:
        raise InputError(_cannot_download(name))
    root = Path(data_root) if data_root is not None else default_data_root()
    folder = root / NAMED[name]
    if is_ogb_folder(folder):
        return folder
    if folder.exists():
        raise InputError(f"{folder}: exists but is no whole download; remove it first")
    url = _find_url(name)
    partial = root / f".{NAMED[name]}.partial-{os.getpid()}"
    try:
        partial.mkdir(parents=True)
        _fetch(name, url, partial)
        _unpack(partial).rename(folder)
    except OSError as error:
        raise InputError(f"{folder}: cannot be written ({error.strerror or error})") from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return folder


def _cannot_download(name: str) -> str:
    if name == "reddit":
        return "reddit is not fetched: put DGL's reddit_data.npz and reddit_graph.npz into a folder `reddit`"
    return f"no download for {name!r}; known are {', '.join(DOWNLOADABLE)}"


def _find_url(name: str) -> str:
    """The address as ogb's own table of graphs has it."""
    found = importlib.util.find_spec("ogb")
    if found is None or found.origin is None:
        raise InputError(f"fetching {name} needs the ogb package: pip install 'distgnn[ogb]'")
    with open(Path(found.origin).parent / "nodeproppred" / "master.csv", newline="", encoding="utf-8") as table:
        rows = list(csv.reader(table))
    column = rows[0].index(name)
    return next(row[column] for row in rows if row[0] == "url")


def _fetch(name: str, url: str, folder: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from ogb.utils.url import download_url
    try:
        download_url(url, str(folder), log=False)
    except (OSError, RuntimeError) as error:
        raise InputError(f"{name} could not be fetched from {url}: {error}; is there a network?") from error


def _unpack(folder: Path) -> Path:
    """Unpack the one archive in a folder; the OGB folder found inside."""
    archive = next(folder.glob("*.zip"))
    try:
        with zipfile.ZipFile(archive) as packed:
            packed.extractall(folder)
    except zipfile.BadZipFile as error:
        raise GraphFormatError(f"{archive.name}: the download is damaged ({error}); try again") from error
    archive.unlink()
    inside = [path for path in folder.iterdir() if is_ogb_folder(path)]
    if len(inside) != 1:
        raise GraphFormatError(f"{archive.name}: holds no OGB graph; try again")
    return inside[0]
