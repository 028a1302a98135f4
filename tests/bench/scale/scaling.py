"""Strong and weak scaling to 128 ranks on generated graphs: cuts really made, parts really measured, messages replayed.

    python tests/bench/scale/scaling.py WORK --scale 0.01 [--ranks 1,2,4,…,128] [--networks 10gbit,25gbit,100gbit]
        [--graphs reddit,products,proteins,papers] [--algorithms cd-0,cd-5,0c] [--speeds 1,16] [--weak]

`--scale` is the share of the published graph's vertices and arcs (1: all). Graphs are RMAT with the published average
degree, features and classes: their replication is that of RMAT and is printed beside the published one of Libra on
the real graph. Densities differ where the scale is not 1. Speed-ups are over our own single rank of as many threads.
This is a replay: a rank's computation is measured alone on this machine, in seconds of the processor (one thread), its
network is a model. `--speeds 1,16`: as measured, and as if every rank were a socket that computes 16 times as fast as
that thread, without which the network is too fast beside one thread. `--weak` scales the graph with the ranks:
`--scale` is then of the largest.

WORK/scaling.json and WORK/scaling.png, .svg; what stands in the file is not run again.
"""

import argparse
import json
import math
import os
import shutil
import statistics
import sys
import tempfile
import time
import traceback
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path

import mpi4py
import numpy as np

mpi4py.rc.initialize = False  # each forked process starts MPI for itself

import torch  # noqa: E402

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "end_to_end"))
from program import distgnn  # noqa: E402

from distgnn import kernels  # noqa: E402
from distgnn.planning.choose import parse_ranks  # noqa: E402

# vertices, undirected edges, features, classes, Libra's copies per vertex in the paper by parts
SHAPES = {
    "reddit": (232_965, 57_307_946, 602, 41, {2: 1.75, 4: 2.94, 8: 4.66, 16: 6.93}),
    "products": (2_449_029, 61_859_140, 100, 47, {2: 1.49, 4: 2.16, 8: 2.98, 16: 3.90, 32: 4.85, 64: 5.74}),
    "proteins": (132_534, 39_561_252, 128, 112, {}),
    "papers": (111_059_956, 1_615_685_872, 128, 172, {32: 4.63, 64: 5.63, 128: 6.62}),
}
# Published speed-ups over the same program on its own one socket: (ranks, cd-0, cd-5, 0c)
DISTGNN = {
    "papers": (128, 27, 83, 123),
    "products": (64, 6.3, 9.9, 16.1),
    "reddit": (16, 0.98, 2.08, 2.91),
    "proteins": (64, 37.9, 59.8, 75.4),
}
PER_PROCESS = 8  # parts measured by one process
SAR_SECONDS = {32: 7.4, 64: 5.1, 128: 3.8}  # papers100M, seconds of an epoch on so many nodes
DIFFERENCES = (
    "DistGNN: sockets of 28 cores and the real graphs; speed-ups over its own one socket",
    "SAR: another model on other nodes; only its ratios from 32 nodes on are drawn",
    "SuperGCN: hierarchical aggregation on thousands of processors; no table of speed-ups that could stand here",
    "ours: RMAT in place of the graphs, a replay, ranks of one thread each",
)


def main() -> None:
    """Every graph, number of ranks and algorithm; then tables and the figure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("work", type=Path)
    parser.add_argument("--scale", type=float, default=0.01)
    parser.add_argument("--ranks", default="1,2,4,…,128")
    parser.add_argument("--networks", default="10gbit,25gbit,100gbit")
    parser.add_argument("--graphs", default="reddit,products,proteins,papers")
    parser.add_argument("--algorithms", default="cd-0,cd-5,0c")
    parser.add_argument("--hidden-feats", type=int, default=256)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--speeds", default="1,16")
    parser.add_argument("--weak", action="store_true")
    parser.add_argument("--keep-parts", action="store_true", help="partition folders are removed after their use")
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    kernels.set_num_threads(1)
    torch.set_num_threads(1)
    out = options.work / ("weak.json" if options.weak else "scaling.json")
    rows = json.loads(out.read_text())["rows"] if out.exists() else []
    counts = parse_ranks(options.ranks)
    for graph in options.graphs.split(","):
        for ranks in counts:
            todo = [name for name in options.algorithms.split(",") if not is_done(rows, graph, ranks, name, options)]
            if todo:
                rows += measure(options, graph, ranks, max(counts), todo)
                out.write_text(json.dumps({"command": sys.argv, "differences": DIFFERENCES, "rows": rows}, indent=1))
    rows = with_speedups(rows)
    out.write_text(json.dumps({"command": sys.argv, "differences": DIFFERENCES, "rows": rows}, indent=1))
    table(rows)
    draw(rows, out.with_suffix(""))


def is_done(rows: list[dict], graph: str, ranks: int, algorithm: str, options: argparse.Namespace) -> bool:
    wanted = {"graph": graph, "ranks": ranks, "algorithm": algorithm, "scale": options.scale}
    return any(wanted.items() <= row.items() for row in rows)


def source_of(graph: str, scale: float) -> str:
    """An RMAT graph of the share `scale` of a published one: a power of two of vertices, the same average degree."""
    nodes, edges, feats, classes, _ = SHAPES[graph]
    exponent = max(10, round(math.log2(nodes * scale)))
    factor = max(1, round(edges * scale / 2**exponent))
    return f"rmat:scale={exponent},edge_factor={factor},feats={feats},classes={classes},seed=1"


def measure(options: argparse.Namespace, graph: str, ranks: int, most: int, algorithms: list[str]) -> list[dict]:
    """Cut, measure and replay; a row for each algorithm and network."""
    scale = options.scale * ranks / most if options.weak else options.scale
    source = source_of(graph, scale)
    parts = options.work / f"parts-{graph}-{ranks}"
    distgnn("partition", source, "--parts", ranks, "--out", parts, "--overwrite", "--quiet")
    manifest = json.loads((parts / "partition.json").read_text())
    common = {"graph": graph, "ranks": ranks, "scale": options.scale, "weak": options.weak, "source": source}
    common |= {name: manifest[name] for name in ("num_nodes", "num_arcs", "replication_factor", "exchange_rows")}
    common["libra_on_the_real_graph"] = SHAPES[graph][-1].get(ranks)
    rows = []
    if ranks == 1:
        found = dict.fromkeys(algorithms, one_rank(options, graph, parts))
    else:
        found = many_ranks(options, graph, parts, algorithms)
    for name, of_name in found.items():
        rows += [common | {"algorithm": name} | row for row in of_name]
        print(f"{graph}, {ranks} ranks, {name}: {[round(row['epoch_seconds'], 4) for row in of_name]}", flush=True)
    if not options.keep_parts:
        shutil.rmtree(parts)
    return rows


def one_rank(options: argparse.Namespace, graph: str, parts: Path) -> list[dict]:
    """Measured: a single rank sends nothing. The same for every network."""
    with tempfile.TemporaryDirectory() as work:
        forked(
            lambda: time_alone(parts, settings_of(options, graph, "cd-0"), options.repeats, Path(work, "alone.json"))
        )
        seconds = json.loads(Path(work, "alone.json").read_text())
    return [
        case | {"epoch_seconds": statistics.median(seconds) / case["speed"], "sent_bytes": 0, "efficiency": 1.0}
        for case in cases(options)
    ]


def cases(options: argparse.Namespace) -> list[dict]:
    """Every network with every speed of computation."""
    speeds = [float(speed) for speed in options.speeds.split(",")]
    return [{"network": network, "speed": speed} for speed, network in product(speeds, options.networks.split(","))]


def time_alone(parts: Path, settings, repeats: int, out: Path) -> None:
    """Epochs of the graph in one piece."""
    from mpi4py import MPI

    from distgnn.graph.loader import load
    from distgnn.nn import model_for
    from distgnn.train.trainer import Trainer

    graph = load(str(parts), "cd-0", MPI.COMM_SELF, say=None)
    trainer = Trainer(model_for(settings.model, graph, "node"), graph, settings.train, say=lambda text: None)
    out.write_text(json.dumps([trainer.train_epoch(epoch)["seconds"] for epoch in range(2 + repeats)][2:]))


def many_ranks(options: argparse.Namespace, graph: str, parts: Path, names: list[str]) -> dict[str, list[dict]]:
    """By algorithm: replayed over every network. Every part is measured in a process of its own."""
    from distgnn.replay.network import parse_network
    from distgnn.replay.outcome import replay

    manifest = json.loads((parts / "partition.json").read_text())
    wanted = {name: settings_of(options, graph, name) for name in names}
    recordings = measure_forked(options, parts, manifest["num_parts"], wanted)
    found: dict[str, list[dict]] = {}
    for name in names:
        for case in cases(options):
            numbers, _ = replay(faster(recordings[name], case["speed"]), parse_network(case["network"]))
            kept = ("epoch_seconds", "compute_seconds", "efficiency", "critical_path")
            row = case | {key: numbers[key] for key in kept}
            row |= {"sent_bytes": numbers["sent_bytes_per_epoch"], "max_sent_bytes": numbers["max_rank_sent_bytes"]}
            found.setdefault(name, []).append(row)
    return found


def settings_of(options: argparse.Namespace, graph: str, algorithm: str):
    """As the command line makes them; layers and width as in the paper."""
    from distgnn.config import ModelConfig, RunConfig, Schedule, Settings, TrainConfig

    model = ModelConfig("sage", 16, 2) if graph == "reddit" else ModelConfig("sage", options.hidden_feats, 3)
    return Settings(TrainConfig(), model, RunConfig(algorithm=algorithm), Schedule()).checked()


def measure_forked(options: argparse.Namespace, parts: Path, num_parts: int, wanted: dict) -> dict[str, list]:
    """By algorithm, a recording of each part. Processes are forked: imports are paid for once, not for every part.

    What `distgnn replay` does, but for peaks of memory, which are those of all algorithms together.
    """
    from distgnn.replay.measure import bin_answers
    from distgnn.replay.recording import Recording

    found: dict[str, list] = {name: [] for name in wanted}
    with tempfile.TemporaryDirectory() as work:
        answers = {name: bin_answers(str(parts), one, num_parts, _folder(work, name)) for name, one in wanted.items()}
        for rank in range(num_parts):
            if rank % PER_PROCESS == 0:  # kernels are loaded once for so many parts
                group = range(rank, min(rank + PER_PROCESS, num_parts))
                forked(partial(record_parts, parts, group, num_parts, wanted, answers, options.repeats, work))
            for name in wanted:
                text = Path(work, f"{name}-{rank}.json").read_text()
                found[name].append(Recording.from_json(json.loads(text)))
    return found


def _folder(work: str, name: str) -> Path:
    folder = Path(work, f"bins-{name}")
    folder.mkdir()
    return folder


def faster(recordings: list, speed: float) -> list:
    """The same messages, with computation divided by `speed`: of one thread as those of a socket, assumed."""

    def event(one: tuple) -> tuple:
        return (*one[:2], one[2] / speed) if one[0] == "compute" else one

    return [replace(one, epochs=[list(map(event, events)) for events in one.epochs]) for one in recordings]


def forked(do) -> None:
    """Do something in a process of its own, where seconds are those of the processor: the machine may be shared."""
    child = os.fork()
    if child:
        if os.waitpid(child, 0)[1]:
            raise SystemExit("what is to be measured failed")
        return
    code = 1
    try:
        from mpi4py import MPI

        MPI.Init()
        time.perf_counter = time.process_time
        do()
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def record_parts(
    parts: Path, group: range, num_ranks: int, wanted: dict, answers: dict, repeats: int, work: str
) -> None:
    """Write the recordings of some parts."""
    from distgnn.replay.worker import MeasuredPart

    for rank, (name, settings) in product(group, wanted.items()):
        told = []
        if rank in answers[name]:
            with np.load(answers[name][rank]) as stored:
                told = [stored[one] for one in stored.files]
        part = MeasuredPart(str(parts), rank, num_ranks, settings, told)
        part.measure(repeats)
        Path(work, f"{name}-{rank}.json").write_text(json.dumps(part.recording().to_json()))
        del part


def with_speedups(rows: list[dict]) -> list[dict]:
    """Rows with `speedup` over one rank; for weak scaling arcs a second over those of one rank."""
    base = {(row["graph"], row["speed"]): row for row in rows if row["ranks"] == 1}
    for row in rows:
        one = base.get((row["graph"], row["speed"]))
        if one:
            rate, first = (each["num_arcs"] / each["epoch_seconds"] for each in (row, one))
            row["speedup"] = rate / first
    return rows


def table(rows: list[dict]) -> None:
    """Speed-ups of the most ranks beside the published ones, and all epochs."""
    titles = (
        "graph | ranks | algorithm | network | speed | epoch s | speed-up | efficiency | copies | Libra, real graph"
    )
    print(f"\n| {titles} |\n|{10 * '---|'}")
    for row in rows:
        cells = [row["graph"], row["ranks"], row["algorithm"], row["network"], f"{row['speed']:g}"]
        cells.append(f"{row['epoch_seconds']:.4f}")
        cells += [f"{row.get('speedup', 0):.2f}", f"{row['efficiency']:.2f}", f"{row['replication_factor']:.2f}"]
        print("| " + " | ".join(map(str, [*cells, row["libra_on_the_real_graph"] or "–"])) + " |")
    print("\nPublished: DistGNN over its own socket (cd-0, cd-5, 0c): ", end="")
    print("; ".join(f"{graph}@{ranks} {a} / {b} / {c}" for graph, (ranks, a, b, c) in DISTGNN.items()))
    print("SAR, papers100M: " + ", ".join(f"{s} s on {n} nodes" for n, s in SAR_SECONDS.items()))
    print("What differs: " + "; ".join(DIFFERENCES))


def draw(rows: list[dict], path: Path) -> None:
    """A panel for each graph and speed: speed-up against ranks, lines for algorithms and networks; published points."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    graphs, speeds = (list(dict.fromkeys(row[name] for row in rows)) for name in ("graph", "speed"))
    size = (4.5 * len(graphs) + 2.5, 4 * len(speeds))
    figure, panels = pyplot.subplots(len(speeds), len(graphs), figsize=size, squeeze=False, layout="constrained")
    for (line, speed), (place, graph) in product(enumerate(speeds), enumerate(graphs)):
        mine = [row for row in rows if row["graph"] == graph and row["speed"] == speed and "speedup" in row]
        panel = panels[line][place]
        draw_panel(panel, graph, mine)
        scale = next(row["scale"] for row in rows if row["graph"] == graph)
        thread = "one thread" if speed == 1 else f"{speed:g} times one thread"
        panel.set_title(f"{graph} (RMAT, share {scale:g}), replayed\nranks of {thread}", fontsize=9)
        panel.set_xlabel("ranks")
    for line in panels:
        line[0].set_ylabel("speed-up over one rank")
    figure.legend(*panels[0][0].get_legend_handles_labels(), loc="outside right center", fontsize=8)
    for ending in ("png", "svg"):
        figure.savefig(path.with_suffix(f".{ending}"), dpi=150)


def draw_panel(panel, graph: str, mine: list[dict]) -> None:
    """Lines of ours, stars of DistGNN, triangles of SAR, the ideal."""
    from distgnn.system.plots import line_styles

    names = list(dict.fromkeys((row["algorithm"], row["network"]) for row in mine))
    for name, style in zip(names, line_styles(), strict=False):
        points = [(row["ranks"], row["speedup"]) for row in mine if (row["algorithm"], row["network"]) == name]
        panel.plot(*zip(*sorted(points), strict=True), label=", ".join(name), **style)
    ranks, *published = DISTGNN[graph]
    for speedup, algorithm in zip(published, ("cd-0", "cd-5", "0c"), strict=True):
        panel.plot([ranks], [speedup], "k*", markersize=11)
        place = {"xytext": (-7, -2), "textcoords": "offset points", "ha": "right"}
        panel.annotate(f"DistGNN {algorithm}", (ranks, speedup), fontsize=7, **place)
    base = next((row["speedup"] for row in mine if row["ranks"] == 32), None)
    if graph == "papers" and base:
        points = [(nodes, base * SAR_SECONDS[32] / seconds) for nodes, seconds in SAR_SECONDS.items()]
        panel.plot(*zip(*points, strict=True), "k:^", label="SAR, from our 32 ranks on")
    counts = sorted({row["ranks"] for row in mine})
    panel.plot(counts, counts, color="grey", linewidth=0.8)
    panel.set_xscale("log", base=2)
    panel.set_yscale("log", base=2)


if __name__ == "__main__":
    main()
