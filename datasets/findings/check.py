"""`check_graph`: everything that is wrong, suspicious, renamed or left out in a graph, at once, as a table."""

from pathlib import Path
from typing import Any

from distgnn.datasets.findings.cautions import add_training_cautions
from distgnn.datasets.findings.findings import Findings
from distgnn.datasets.objects.recognise import as_graph_data
from distgnn.datasets.registry import load_graph

# A count of `GraphData.counts` -> what is done with these.
TREATMENT = {
    "duplicates": "edges beyond the first of a pair: kept, each counts",
    "reciprocal": "pairs of vertices with arcs both ways",
    "self_loops": "kept, one arc each; --self-loops add or remove",
    "isolated": "vertices without an edge: kept, their aggregation is 0",
    "unlabelled": "vertices without a label: they count in no loss",
    "no_split": "vertices in no split: they only pass messages",
    "split_unlabelled": "vertices of a split without a label: left out of it",
}


def find_all(
    source: Any,
    data_root: str | Path | None = None,
    direction: str = "stored",
    split: bool = False,
    renumber: bool = False,
    **fields: Any,
) -> Findings:
    """The findings of a graph, errors among them; arguments of `check_graph`; split: a random split will be made."""
    findings = Findings(collect=True)
    with findings.reading("graph"):
        if isinstance(source, str | Path):
            graph = load_graph(source, data_root, findings=findings, renumber=renumber)
        else:
            graph = as_graph_data(source, findings, **fields)
        if findings.wrong:
            return findings
        add_training_cautions(graph, direction, split)
        counts = graph.counts()
        for name, text in TREATMENT.items():
            needed = graph.labels is not None or "label" not in name
            if counts[name] and needed and (name != "no_split" or counts["train"]):
                findings.add("note", name, text, counts[name])
    return findings


def check_graph(source: Any, data_root: str | Path | None = None, direction: str = "stored", **fields: Any) -> Findings:
    """Print everything that is found in a graph, as a table with counts, and return it.

    Args:
        source: anything `load_graph` takes: a name, a folder, or an object of DGL, PyG, NetworkX, scipy, pandas, numpy
            or torch.
        direction: as of `partition_graph`: "both" is not warned of one-way edges.
        fields: as of `GraphData.from_…`, for an object.
    Returns: the findings, a list; `findings.wrong` are errors. Nothing is raised for a graph that is wrong.
    Notes: one sort of the edges (16 bytes per edge).

    Example:
        >>> graph = dg.GraphData.from_arrays([[0, 1], [1, 2]], num_nodes=9, directed=True, feats=[[1.0]] * 9)
        >>> findings = dg.check_graph(graph)
        finding  field     count  what, where, what to do
        note     isolated      6  vertices without an edge: kept, their aggregation is 0
    """
    findings = find_all(source, data_root, direction, **fields)
    print(findings.table())
    return findings
