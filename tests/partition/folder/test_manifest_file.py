"""The partition folder, damaged or forged: the file is named, and nothing that it promises is believed."""

import pytest

from distgnn.errors import InputError, PartitionFormatError
from distgnn.partition import load_part, read_manifest

from ..folders import resign


@pytest.mark.parametrize(
    "name", ["num_parts", "num_nodes", "num_arcs", "graph", "parts", "name", "pair_rows", "seconds"]
)
def test_manifest_without_a_field(name, folder):
    resign(folder, lambda manifest: manifest.pop(name))
    with pytest.raises(PartitionFormatError, match=r"partition.json: .* missing or wrong"):
        read_manifest(folder)


def change_sizes(manifest):
    manifest["parts"][0]["owned"] += 1
    manifest["parts"][1]["owned"] -= 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (change_sizes, "shape"),
        (lambda m: m["parts"][0].update(files={}), "no entry"),
        (lambda m: m["parts"][0]["files"].update(labels="../../labels"), r"files\.labels is missing or wrong"),
        (lambda m: m["parts"][0]["files"]["labels"].update(shape=[1]), "shape"),
        (lambda m: m["graph"].update(num_classes=1), "labels must lie in"),
        (lambda m: m.update(edge_report=3), "edge_report is missing or wrong"),
    ],
)
def test_a_manifest_that_does_not_fit_its_parts(change, message, folder):
    resign(folder, change)
    with pytest.raises(PartitionFormatError, match=message):
        load_part(folder, 0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not readable as JSON"),
        ("[1, 2]", "no format_version"),
        ('{"a": 1}', "no format_version"),
        ("[" * 100_000, "not readable as JSON"),
        ('{"format_version": 99}', "format version 99 is not 1: cut the graph again"),
        ('{"format_version": true}', "no format_version"),
        ('{"format_version": 1}', "its checksum is wrong"),
    ],
)
def test_not_a_manifest(text, message, folder):
    (folder / "partition.json").write_text(text)
    with pytest.raises(PartitionFormatError, match=message):
        load_part(folder, 0)


@pytest.mark.parametrize(
    "change",
    [
        lambda m: m.update(num_nodes=10**400),
        lambda m: m.update(seconds=10**400),
        lambda m: m.update(peak_rss_bytes=float("inf")),
        lambda m: m.update(capacities=[10**400, 1, 1]),
        lambda m: m["graph"].update(num_feats=2**63),
        lambda m: m["pair_rows"][0].__setitem__(1, 10**400),
        lambda m: m["parts"][0].update(train=2**64),
    ],
)
def test_numbers_that_no_graph_has_are_refused(change, folder):
    resign(folder, change)
    with pytest.raises(PartitionFormatError, match=r"partition\.json: .* missing or wrong"):
        read_manifest(folder)


def test_not_a_partition_folder(tmp_path, folder):
    with pytest.raises(PartitionFormatError, match="no such folder"):
        read_manifest(tmp_path / "nowhere")
    with pytest.raises(PartitionFormatError, match=r"has no partition\.json"):
        read_manifest(tmp_path)
    with pytest.raises(InputError, match="parts 0 to 2, no part 3"):
        load_part(folder, 3)
