"""Fetch a graph by its name: OGB's, Planetoid's and Reddit, from the addresses that `ogb`, PyG and DGL use."""

import tempfile
from pathlib import Path

from distgnn.config import did_you_mean
from distgnn.datasets.fetch import Say, fetch, unpack
from distgnn.datasets.formats.folder import is_graph_folder
from distgnn.datasets.formats.ogb_download import DOWNLOADABLE, download_ogb
from distgnn.datasets.formats.planetoid import FILES, NAMES, read_planetoid
from distgnn.datasets.formats.reddit import check_reddit, is_reddit_folder
from distgnn.datasets.registry import NAMED, default_data_root
from distgnn.errors import InputError
from distgnn.system.atomic import new_folder

PLANETOID_URL = "https://github.com/kimiyoung/planetoid/raw/master/data"
REDDIT_URL = "https://data.dgl.ai/dataset/reddit.zip"
REDDIT_FILES = ("reddit_data.npz", "reddit_graph.npz")
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
    if name in DOWNLOADABLE:
        return download_ogb(name, folder, say)
    if is_graph_folder(folder) or is_reddit_folder(folder):
        return folder
    if folder.exists():
        raise InputError(f"{folder}: exists but is no whole download; remove it first")
    return _download_planetoid(name, folder) if name in NAMES else _download_reddit(folder, say)


def _download_planetoid(name: str, folder: Path) -> Path:
    with tempfile.TemporaryDirectory() as place:
        for file in (f"ind.{name}.{kind}" for kind in FILES):
            fetch(name, f"{PLANETOID_URL}/{file}", Path(place, file), PLANETOID_BYTES)
        graph = read_planetoid(Path(place))
    return graph.save(folder)


def _download_reddit(folder: Path, say: Say | None) -> Path:
    with new_folder(folder, None) as partial:
        archive = partial / "reddit.zip"
        fetch("reddit", REDDIT_URL, archive, REDDIT_BYTES, say)
        unpack(archive, partial, REDDIT_FILES)
        archive.unlink()
        check_reddit(partial)
    return folder
