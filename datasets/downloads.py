"""Fetch a graph by its name: OGB's, Planetoid's and Reddit, from the addresses that `ogb`, PyG and DGL use."""

import csv
import importlib.util
import shutil
import tempfile
from pathlib import Path

from distgnn.config import did_you_mean
from distgnn.datasets.fetch import Say, fetch, unpack
from distgnn.datasets.formats.folder import is_graph_folder
from distgnn.datasets.formats.ogb import LAYOUTS, LINK_LAYOUTS, is_ogb_folder
from distgnn.datasets.formats.planetoid import FILES, NAMES, read_planetoid
from distgnn.datasets.formats.reddit import check_reddit, is_reddit_folder
from distgnn.datasets.registry import NAMED, default_data_root
from distgnn.errors import GraphFormatError, InputError
from distgnn.system.atomic import new_folder

PLANETOID_URL = "https://github.com/kimiyoung/planetoid/raw/master/data"
REDDIT_URL = "https://data.dgl.ai/dataset/reddit.zip"
REDDIT_FILES = ("reddit_data.npz", "reddit_graph.npz")
TABLES = {layout.name: "nodeproppred" for layout in LAYOUTS.values()}  # those of the `ogb` package
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
