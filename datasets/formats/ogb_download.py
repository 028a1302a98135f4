"""Fetch OGB's graphs through the `ogb` package: whole, or not at all."""

import csv
import errno
import importlib.util
import shutil
import warnings
import zipfile
from pathlib import Path

from distgnn.datasets.array_files import MOST_PACKED
from distgnn.datasets.formats.ogb import LAYOUTS, is_ogb_folder
from distgnn.datasets.formats.ogb_links import LINK_LAYOUTS
from distgnn.errors import GraphFormatError, InputError
from distgnn.system.atomic import new_folder, sync_file

NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS)
TABLES = {layout.name: "nodeproppred" for layout in LAYOUTS.values()}
TABLES |= {layout.name: "linkproppred" for layout in LINK_LAYOUTS.values()}
DOWNLOADABLE = tuple(TABLES)


def download_ogb(name: str, folder: Path) -> Path:
    """Download and unpack one of `DOWNLOADABLE` as `folder`, if it is not there yet.

    Returns: the folder.
    Raises: InputError without the `ogb` extra or without a network, GraphFormatError for a damaged archive.
    Notes: nothing is left behind when it fails; ogb shows a progress bar on standard error.
    """
    if is_ogb_folder(folder):
        return folder
    if folder.exists():
        raise InputError(f"{folder}: exists but is no whole download; remove it first")
    url = _find_url(name)
    with new_folder(folder, None) as partial:
        _fetch(name, url, partial)
        unpack(partial)
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


def _fetch(name: str, url: str, folder: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from ogb.utils.url import download_url
    try:
        download_url(url, str(folder), log=False)
    except (OSError, RuntimeError) as error:
        raise InputError(f"{name} could not be fetched from {url}: {error}; is there a network?") from error


def unpack(folder: Path) -> None:
    """Put the OGB folder that lies in the one archive of `folder` in the archive's place.

    Raises: GraphFormatError for a damaged archive, or one that unpacks to more than an archive of its size can.
    """
    archive, inside = next(folder.glob("*.zip")), folder / "unpacked"
    try:
        with zipfile.ZipFile(archive) as packed:
            if sum(info.file_size for info in packed.infolist()) > MOST_PACKED * archive.stat().st_size:
                raise ValueError("it says that it unpacks to more than it can")
            packed.extractall(inside)
    except Exception as error:  # zipfile and zlib raise nearly anything on damaged bytes
        if getattr(error, "errno", None) in NO_ROOM:
            raise
        reason = " ".join(str(error).split())[:160]
        raise GraphFormatError(f"{archive.name}: the download is damaged ({reason}); try again") from error
    archive.unlink()
    found = [path for path in inside.iterdir() if is_ogb_folder(path)] if inside.is_dir() else []
    if len(found) != 1:
        raise GraphFormatError(f"{archive.name}: holds no OGB graph; try again")
    for path in found[0].rglob("*"):
        if path.is_file():
            sync_file(path)
    for path in list(found[0].iterdir()):
        path.rename(folder / path.name)
    shutil.rmtree(inside)
