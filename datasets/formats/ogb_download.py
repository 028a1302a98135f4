"""Fetch OGB's graphs, from the addresses in the table of the `ogb` package: whole, or not at all."""

import csv
import importlib.util
import shutil
from pathlib import Path

from distgnn.datasets.fetch import Say, fetch, unpack
from distgnn.datasets.formats.ogb import LAYOUTS, is_ogb_folder
from distgnn.datasets.formats.ogb_links import LINK_LAYOUTS
from distgnn.errors import GraphFormatError, InputError
from distgnn.system.atomic import new_folder

TABLES = {layout.name: "nodeproppred" for layout in LAYOUTS.values()}
TABLES |= {layout.name: "linkproppred" for layout in LINK_LAYOUTS.values()}
DOWNLOADABLE = tuple(TABLES)


def download_ogb(name: str, folder: Path, say: Say | None = None) -> Path:
    """Download and unpack one of `DOWNLOADABLE` as `folder`, if it is not there yet.

    Returns: the folder.
    Raises: InputError without the `ogb` extra or without a network, GraphFormatError for a damaged archive.
    Notes: nothing is left behind when it fails.
    """
    if is_ogb_folder(folder):
        return folder
    if folder.exists():
        raise InputError(f"{folder}: exists but is no whole download; remove it first")
    url = _find_url(name)
    with new_folder(folder, None) as partial:
        fetch(name, url, partial / "download.zip", say=say)
        unpack_ogb(partial)
    return folder


def _find_url(name: str) -> str:
    """The address as ogb's own table of graphs has it."""
    found = importlib.util.find_spec("ogb")
    if found is None or found.origin is None:
        raise InputError(f"fetching {name} needs the ogb package: pip install 'distgnn[ogb]'")
    with open(Path(found.origin).parent / TABLES[name] / "master.csv", newline="", encoding="utf-8") as table:
        rows = list(csv.reader(table))
    column = rows[0].index(name)
    return next(row[column] for row in rows if row[0] == "url")


def unpack_ogb(folder: Path) -> None:
    """Put the OGB folder that lies in the one archive of `folder` in the archive's place.

    Raises: GraphFormatError for a damaged archive, or one without an OGB graph.
    """
    archive, inside = next(folder.glob("*.zip")), folder / "unpacked"
    unpack(archive, inside)
    archive.unlink()
    found = [path for path in inside.iterdir() if is_ogb_folder(path)] if inside.is_dir() else []
    if len(found) != 1:
        raise GraphFormatError(f"{archive.name}: holds no OGB graph; try again")
    for path in list(found[0].iterdir()):
        path.rename(folder / path.name)
    shutil.rmtree(inside)
