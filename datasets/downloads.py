"""Fetch a graph by its name: OGB's, Planetoid's and Reddit, from the addresses that `ogb`, PyG and DGL use."""

import csv
import errno
import http.client
import importlib.util
import shutil
import tempfile
import urllib.request
import zipfile
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

from distgnn.config import did_you_mean
from distgnn.datasets.formats.folder import is_graph_folder
from distgnn.datasets.formats.ogb import LAYOUTS, LINK_LAYOUTS, is_ogb_folder
from distgnn.datasets.formats.planetoid import FILES, NAMES, read_planetoid
from distgnn.datasets.formats.reddit import check_reddit, is_reddit_folder
from distgnn.datasets.registry import NAMED, default_data_root
from distgnn.errors import GraphFormatError, InputError
from distgnn.system.atomic import new_folder, sync_file
from distgnn.system.units import human_bytes

Say = Callable[[str], None]

PLANETOID_URL = "https://github.com/kimiyoung/planetoid/raw/master/data"
REDDIT_URL = "https://data.dgl.ai/dataset/reddit.zip"
REDDIT_FILES = ("reddit_data.npz", "reddit_graph.npz")
TABLES = {layout.name: "nodeproppred" for layout in LAYOUTS.values()}  # of the `ogb` package
TABLES |= {layout.name: "linkproppred" for layout in LINK_LAYOUTS.values()}
PLANETOID_BYTES, REDDIT_BYTES = 1 << 28, 1 << 32  # many times what they have


def download(name: str, data_root: str | Path | None = None, say: Say | None = None) -> Path:
    """Download and unpack a graph below the data root, if it is not there yet.

    Args:
        name: `cora`, `citeseer`, `pubmed` (Planetoid's files), `reddit` (DGL's, 1.2 GB), `ogbn-arxiv`, `ogbn-products`,
            `ogbn-proteins`, `ogbn-mag`, `ogbn-papers100M` (57 GB), or for links `ogbl-ppa`, `ogbl-collab`,
            `ogbl-citation2`, `ogbl-ddi`, `ogbl-vessel` (OGB's need the `ogb` extra).
        data_root: the environment's DISTGNN_DATA, or `data`, if not given.
        say: called with a line now and then while a large file arrives.
    Returns: the folder.
    Raises: InputError for an unknown name or without a network, GraphFormatError for a damaged download.
    Notes: nothing is left behind when it fails. What arrives, and what it unpacks to, has limits. Planetoid's pickles
        are read by an unpickler that makes arrays only and are kept as a plain graph folder.
    """
    if name not in NAMED:
        raise InputError(f"no download for {name!r}{did_you_mean(name, NAMED)}; known are {', '.join(NAMED)}")
    folder = (Path(data_root) if data_root is not None else default_data_root()) / NAMED[name]
    if any(is_there(folder) for is_there in (is_ogb_folder, is_graph_folder, is_reddit_folder)):
        return folder
    if folder.exists():
        raise InputError(f"{folder}: exists but is no whole download; remove it first")
    if name in NAMES:
        with tempfile.TemporaryDirectory() as place:
            for file in (f"ind.{name}.{kind}" for kind in FILES):
                fetch(name, f"{PLANETOID_URL}/{file}", Path(place, file), PLANETOID_BYTES)
            graph = read_planetoid(Path(place))
        return graph.save(folder)
    url = _find_url(name) if name in TABLES else REDDIT_URL
    with new_folder(folder, None) as partial:
        archive = partial / ("download.zip" if name in TABLES else "reddit.zip")
        if name in TABLES:
            fetch(name, url, archive, say=say)
            unpack_ogb(partial)
        else:
            fetch(name, url, archive, REDDIT_BYTES, say)
            unpack(archive, partial, REDDIT_FILES)
            archive.unlink()
            check_reddit(partial)
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
    """Put the OGB folder that lies in the one archive of `folder` in its place. Raises: GraphFormatError."""
    archive, inside = next(folder.glob("*.zip")), folder / "unpacked"
    unpack(archive, inside)
    archive.unlink()
    found = [path for path in inside.iterdir() if is_ogb_folder(path)] if inside.is_dir() else []
    if len(found) != 1:
        raise GraphFormatError(f"{archive.name}: holds no OGB graph; try again")
    for path in list(found[0].iterdir()):
        path.rename(folder / path.name)
    shutil.rmtree(inside)


# The one way in which files come from the network: limits of time, bytes and unpacked bytes, and one-line errors.

SECONDS = 60  # without an answer
BLOCK = 1 << 20
MOST_BYTES = 1 << 37  # papers100M has 57 GB
UNPACKED = 20  # times its size: archives of graphs hold files that are packed already
FREE = 1 << 24  # of unpacked bytes, whatever the archive's size
MOST_FILES = 10_000
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS)


def fetch(name: str, url: str, path: Path, most_bytes: int = MOST_BYTES, say: Say | None = None) -> None:
    """Write what `url` answers to `path`.

    Args: name: of the graph, for errors; say: called with a line at each tenth of a large answer.
    """
    try:
        with urllib.request.urlopen(url, timeout=SECONDS) as answer, open(path, "wb") as file:
            _copy(name, answer, file, most_bytes, say)
    except (InputError, KeyboardInterrupt):
        raise
    except Exception as error:  # urllib and http.client raise nearly anything on an answer that is no HTTP
        if getattr(error, "errno", None) in NO_ROOM:
            raise
        reason = " ".join(str(getattr(error, "reason", None) or error).split())[:160] or type(error).__name__
        if isinstance(error, http.client.IncompleteRead):
            reason = "the answer was cut short"
        raise InputError(f"{name} could not be fetched from {url}: {reason}; is there a network?") from error


def _copy(name: str, answer: Any, file: Any, most_bytes: int, say: Say | None) -> None:
    """Block by block, as many bytes as were promised, and no more than allowed."""
    header = getattr(answer, "headers", None)
    length = (header.get("Content-Length") or "") if header is not None else ""
    promised = int(length) if length.isascii() and length.isdigit() else None
    if promised is not None and promised > most_bytes:
        raise InputError(f"{name}: the answer has {human_bytes(promised)}, at most {human_bytes(most_bytes)} are taken")
    count, tenth = 0, 1
    while block := answer.read(BLOCK):
        count += len(block)
        if count > most_bytes:
            raise InputError(f"{name}: the answer is longer than the {human_bytes(most_bytes)} that are taken")
        file.write(block)
        while say is not None and promised is not None and promised > 10 * BLOCK and 10 * count >= tenth * promised:
            say(f"{name}: {human_bytes(count)} of {human_bytes(promised)}")
            tenth += 1
    if promised is not None and count != promised:
        raise InputError(f"{name}: the answer was cut short, at {count} of {promised} bytes; try again")
    if count == 0:
        raise InputError(f"{name}: the answer was empty; try again")


def unpack(archive: Path, folder: Path, only: Collection[str] | None = None) -> None:
    """The files of a zip archive below `folder`, each synced.

    Args: only: names of the files that are wanted; all of them must be there.
    """
    try:
        with zipfile.ZipFile(archive) as packed:
            members = [info for info in packed.infolist() if only is None or info.filename in only]
            missing = set(only or ()) - {info.filename for info in members}
            if missing:
                raise ValueError(f"it lacks {min(missing)}")
            _check(archive, folder, members)
            for info in members:
                packed.extract(info, folder)
    except InputError:
        raise
    except Exception as error:  # zipfile and zlib raise nearly anything on damaged bytes
        if getattr(error, "errno", None) in NO_ROOM:
            raise
        reason = " ".join(str(error).split())[:160] or type(error).__name__
        raise GraphFormatError(f"{archive.name}: the download is damaged ({reason}); try again") from error
    for path in folder.rglob("*"):
        if path.is_file() and path != archive:
            sync_file(path)


def _check(archive: Path, folder: Path, members: list[zipfile.ZipInfo]) -> None:
    """Raise ValueError for what no archive of a graph has, before anything is written."""
    total = sum(info.file_size for info in members)
    if len(members) > MOST_FILES:
        raise ValueError(f"it holds {len(members)} files")
    if len({info.filename for info in members}) < len(members):
        raise ValueError("it holds a file twice")
    odd = next((info for info in members if info.compress_type not in METHODS or info.flag_bits & 1), None)
    if odd is not None:
        raise ValueError(f"{odd.filename[:60]} is encrypted, or packed by a method that is no deflate")
    if total > UNPACKED * archive.stat().st_size + FREE:
        raise ValueError(f"it says that it unpacks to {human_bytes(total)}, more than {UNPACKED} times its size")
    free = shutil.disk_usage(folder.parent if not folder.exists() else folder).free
    if total > free:
        raise InputError(
            f"{archive.name} unpacks to {human_bytes(total)}, and {folder.parent} has {human_bytes(free)} free"
        )
