"""A seeded few hundred damaged and hostile folders of every kind; FUZZ_INPUTS=1000 in the environment tries more."""

import os
import random
import resource
import tracemalloc
import warnings
from pathlib import Path

import numpy as np
import pytest
from fuzz_targets import DRAWN, FORGIVING, KINDS, SLOW, make_targets, repair_partition
from fuzzing import files_below, try_one
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from distgnn.datasets.array_files import read_npy
from distgnn.datasets.generators.generator_spec import RmatOptions, parse_spec
from distgnn.errors import DistGNNError, GraphFormatError
from distgnn.system.units import parse_bytes


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return tmp_path_factory.mktemp("fuzz")


@pytest.fixture(scope="module")
def targets(root):
    return make_targets(root)


@pytest.fixture(scope="module")
def files(root, targets):
    return files_below(root)


@pytest.fixture
def watched_memory(kind):
    """Peaks are traced. What draws takes five times as long then: it may not take a gigabyte more, at any time."""
    limits, pages = resource.getrlimit(resource.RLIMIT_AS), int(Path("/proc/self/statm").read_text().split()[0])
    if kind in DRAWN:
        resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + (1 << 30), limits[1]))
    else:
        tracemalloc.start(1)
    yield
    tracemalloc.stop()
    resource.setrlimit(resource.RLIMIT_AS, limits)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_readers_survive(targets, files, root, kind, watched_memory):
    target = next(target for target in targets if target.name == kind)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        count = int(os.environ.get("FUZZ_INPUTS", 3 if kind in SLOW else 20))
        outcomes = [try_one(target, random.Random(f"suite-{number}")) for number in range(count)]
    assert not [outcome for outcome in outcomes if outcome.startswith("finding")]
    assert "refused" in outcomes or kind in FORGIVING
    assert files_below(root) == files


@pytest.mark.parametrize(
    ("descr", "shape", "says"),
    [
        ("|S0", (5, 2), "0 bytes wide"),  # numpy divides by the width when it maps the file: the process would end
        ("<f8", (10**12, 10**6), "shorter than its header says"),
        ("<i8", (-4, 2), "cannot have the shape"),
        ("|O", (1, 2), "Python objects"),
    ],
)
def test_headers_that_promise_the_impossible(tmp_path, descr, shape, says):
    text = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}".encode().ljust(117) + b"\n"
    (tmp_path / "edges.npy").write_bytes(b"\x93NUMPY\x01\x00" + bytes([len(text), 0]) + text + bytes(80))
    with pytest.raises(GraphFormatError, match=says):
        read_npy(tmp_path / "edges.npy")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["halo_counts", "owned_owned_indptr"])
def test_counts_whose_sum_or_difference_wraps_are_refused(targets, name):
    target = next(target for target in targets if target.name == "two parts")
    path = target.folder / "part-0" / f"{name}.npy"
    array = np.load(path)
    array.flat[-4:-1] = [2**63 - 1, -(2**63), -1] if name.endswith("indptr") else [2**62, 2**62, 2**62]
    np.save(path, array)
    touched = {path}
    repair_partition(target.folder, touched)
    with pytest.raises(DistGNNError, match=name):
        target.read(target.folder)
    target.restore(touched)


@seed(1)
@settings(max_examples=100, deadline=None, database=None, suppress_health_check=list(HealthCheck))
@given(st.text(max_size=60))
def test_texts_survive(text):
    for read in (lambda: parse_spec(f"rmat:{text}", RmatOptions, 0), lambda: parse_bytes(text)):
        try:
            read()
        except DistGNNError as error:
            assert "\n" not in str(error)
