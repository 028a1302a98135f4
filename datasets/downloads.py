"""Fetch a graph by its name: OGB's, Planetoid's and Reddit, from the addresses that `ogb`, PyG and DGL use."""

import shutil
import tempfile
import urllib.request
import zipfile
from pathlib import Path

from distgnn.config import did_you_mean
from distgnn.datasets.formats.folder import is_graph_folder
from distgnn.datasets.formats.ogb_download import DOWNLOADABLE, download_ogb
from distgnn.datasets.formats.planetoid import FILES, NAMES, read_planetoid
from distgnn.datasets.formats.reddit import is_reddit_folder
from distgnn.datasets.registry import NAMED, default_data_root
from distgnn.errors import GraphFormatError, InputError
from distgnn.system.atomic import new_folder

PLANETOID_URL = "https://github.com/kimiyoung/planetoid/raw/master/data"
REDDIT_URL = "https://data.dgl.ai/dataset/reddit.zip"
REDDIT_FILES = ("reddit_data.npz", "reddit_graph.npz")
SECONDS = 60  # without an answer


def download(name: str, data_root: str | Path | None = None) -> Path:
    """Download and unpack a graph below the data root, if it is not there yet.

    Args:
        name: `cora`, `citeseer`, `pubmed` (Planetoid's files), `reddit` (DGL's, 1.2 GB), `ogbn-arxiv`, `ogbn-products`,
            `ogbn-proteins`, `ogbn-mag`, `ogbn-papers100M` (57 GB), or for links `ogbl-ppa`, `ogbl-collab`,
            `ogbl-citation2`, `ogbl-ddi`, `ogbl-vessel` (OGB's need the `ogb` extra).
        data_root: the environment's DISTGNN_DATA, or `data`, if not given.
    Returns: the folder.
    Raises: InputError for an unknown name or without a network, GraphFormatError for a damaged download.
    Notes: nothing is left behind when it fails. Planetoid's pickles are read by an unpickler that makes arrays only
        and are kept as a plain graph folder.
    """
    if name not in NAMED:
        raise InputError(f"no download for {name!r}{did_you_mean(name, NAMED)}; known are {', '.join(NAMED)}")
    folder = (Path(data_root) if data_root is not None else default_data_root()) / NAMED[name]
    if name in DOWNLOADABLE:
        return download_ogb(name, folder)
    if is_graph_folder(folder) or is_reddit_folder(folder):
        return folder
    if folder.exists():
        raise InputError(f"{folder}: exists but is no whole download; remove it first")
    return _download_planetoid(name, folder) if name in NAMES else _download_reddit(folder)


def _download_planetoid(name: str, folder: Path) -> Path:
    with tempfile.TemporaryDirectory() as place:
        for file in (f"ind.{name}.{kind}" for kind in FILES):
            _fetch(name, f"{PLANETOID_URL}/{file}", Path(place, file))
        graph = read_planetoid(Path(place))
    return graph.save(folder)


def _download_reddit(folder: Path) -> Path:
    with new_folder(folder, None) as partial:
        archive = partial / "reddit.zip"
        _fetch("reddit", REDDIT_URL, archive)
        try:
            with zipfile.ZipFile(archive) as packed:
                for file in REDDIT_FILES:
                    packed.extract(file, partial)
        except (KeyError, zipfile.BadZipFile, EOFError, ValueError) as error:
            raise GraphFormatError(f"{archive.name}: the download is damaged ({error}); try again") from error
        archive.unlink()
    return folder


def _fetch(name: str, url: str, path: Path) -> None:
    try:
        with urllib.request.urlopen(url, timeout=SECONDS) as answer, open(path, "wb") as file:
            shutil.copyfileobj(answer, file)
    except OSError as error:  # urllib's URLError and HTTPError are OSErrors too
        reason = getattr(error, "reason", None) or error
        raise InputError(f"{name} could not be fetched from {url}: {reason}; is there a network?") from error
