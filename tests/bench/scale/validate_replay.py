"""Is the replay right? Epochs of two hosts over links of a given rate, beside what `distgnn replay` predicts of them.

    python tests/bench/scale/validate_replay.py WORK [--rates 10gbit,1gbit,100mbit] [--algorithms cd-0,cd-5,0c]
        [--graphs ogb/ogbn_arxiv,web-notredame,rmat:scale=17,edge_factor=8,feats=128,classes=40,seed=1]

Needs root and iproute2 (tests/bench/network/hosts.py), two cores and nothing else running. For each rate the network
is measured once, by `distgnn prices` on the hosts; for each graph and algorithm parts are measured here, both at
the same time on a core each, as the hosts run. Graphs are separated by semicolons or, without generators, commas.

`--rounds N`: parts and real runs are measured in turn, N times over; medians of both are compared. One measurement each
would compare a machine of now with one of some minutes ago, which differ by up to a quarter.

Printed, and written to WORK/validation.json: predicted and real median epoch, error; memory of the largest rank; the
median and the worst error. Rounds of a case that stand in the file are not run again.
"""

import argparse
import json
import re
import statistics
import sys
from itertools import product
from pathlib import Path

import numpy as np

sys.path.extend(str(Path(__file__).resolve().parents[1] / room) for room in ("network", "end_to_end"))
from program import distgnn

NUM_FEATS, NUM_CLASSES = 128, 40  # of a graph that has none
GRAPHS = "ogb/ogbn_arxiv;web-notredame;rmat:scale=17,edge_factor=8,feats=128,classes=40,seed=1"


def main() -> None:
    """Every case; then the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("work", type=Path)
    parser.add_argument("--rates", default="10gbit,1gbit,100mbit")
    parser.add_argument("--graphs", default=GRAPHS)
    parser.add_argument("--algorithms", default="cd-0,cd-5,0c", help="with words: cd-5/int8, cd-0/copies")
    parser.add_argument("--hidden-feats", type=int, default=128)
    parser.add_argument("--epochs", type=int, default=16)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--rotate", action="store_true", help="each algorithm over each link on one graph, in turn")
    parser.add_argument("--cut", action="store_true", help="only cut the graphs: the rest then runs on a quiet machine")
    options = parser.parse_args()
    options.work = options.work.resolve()
    options.work.mkdir(parents=True, exist_ok=True)
    out = options.work / "validation.json"
    rows = json.loads(out.read_text()) if out.exists() else []
    graphs = re.split(r";" if ";" in options.graphs or ":" in options.graphs else r",", options.graphs.strip(";"))
    folders = {graph: cut(options.work, graph) for graph in graphs}
    rates = [] if options.cut else options.rates.split(",")
    prices = {rate: measure_link(options.work, rate) for rate in rates}
    for number, rate, case in product(range(options.rounds), rates, cases(options, folders)):
        place, graph, algorithm = case
        if options.rotate and (rates.index(rate) + place) % len(folders) != list(folders).index(graph):
            continue
        key = {"rate": rate, "graph": graph, "algorithm": algorithm, "hidden_feats": options.hidden_feats}
        if any((key | {"round": number}).items() <= row.items() for row in rows):
            continue
        predicted = replayed(options, folders[graph], algorithm, prices[rate], number)
        real = trained(options, rate, folders[graph], algorithm)
        rows.append(key | {"round": number} | compared(predicted, real))
        out.write_text(json.dumps(rows, indent=1))
        print(line(rows[-1]), flush=True)
    if not options.cut:
        table(over_rounds(rows))


def cases(options: argparse.Namespace, folders: dict[str, Path]) -> list[tuple[int, str, str]]:
    """(place of the algorithm, graph, algorithm)."""
    return [(place, graph, name) for graph in folders for place, name in enumerate(options.algorithms.split(","))]


def over_rounds(rows: list[dict]) -> list[dict]:
    """A row of medians for each case."""
    names = ("rate", "graph", "algorithm", "hidden_feats")
    found: dict[tuple, list[dict]] = {}
    for row in rows:
        found.setdefault(tuple(row[name] for name in names), []).append(row)
    medians = []
    for key, same in found.items():
        row = dict(zip(names, key, strict=True)) | {"bytes_equal": all(one["bytes_equal"] for one in same)}
        for name in (
            "predicted_seconds",
            "real_seconds",
            "predicted_memory",
            "real_memory",
            "predicted_wait",
            "real_wait",
        ):
            row[name] = statistics.median(one[name] for one in same)
        row["error"] = row["predicted_seconds"] / row["real_seconds"] - 1
        row["memory_error"] = row["predicted_memory"] / row["real_memory"] - 1
        medians.append(row)
    return medians


def cut(work: Path, graph: str) -> Path:
    """The folder of two parts."""
    name = re.sub("[^a-z0-9]+", "-", graph.lower())
    parts = work / f"parts-{name}"
    if not (parts / "partition.json").exists():
        distgnn("partition", with_rows(graph, work / f"graph-{name}"), "--parts", 2, "--out", parts, "--quiet")
    return parts


def with_rows(graph: str, folder: Path) -> str:
    """The graph, or a folder of it with drawn features and labels where it has none."""
    from distgnn.datasets import load_graph

    data = load_graph(graph)
    if data.labels is not None and data.feats is not None:
        return graph
    folder.mkdir(exist_ok=True)
    random, nodes = np.random.default_rng(0), data.num_nodes
    np.save(folder / "edges.npy", data.edges)
    np.save(folder / "feats.npy", random.standard_normal((nodes, NUM_FEATS), np.float32))
    np.save(folder / "labels.npy", random.integers(0, NUM_CLASSES, nodes))
    for name, rows in zip(("train", "valid", "test"), np.array_split(random.permutation(nodes), 3), strict=True):
        np.save(folder / f"{name}.npy", rows)
    described = {"name": folder.name, "num_nodes": nodes, "directed": data.directed}
    (folder / "graph.json").write_text(json.dumps(described))
    return str(folder)


def measure_link(work: Path, rate: str) -> Path:
    """The network as the library sees it."""
    from hosts import hosts

    prices = work / f"prices-{rate}.json"
    if not prices.exists():
        with hosts(2, rate) as run:
            run("-m", "distgnn.cli", "prices", prices, "--json")
    return prices


def words_of(options: argparse.Namespace, algorithm: str) -> list:
    """The options that say what is trained."""
    name, *more = algorithm.split("/")
    words = ["--algorithm", name, "--hidden-feats", options.hidden_feats]
    for word in more:
        words += ["--update", word] if word in ("owners", "copies") else ["--wire", word]
    return words


def replayed(options: argparse.Namespace, parts: Path, algorithm: str, prices: Path, number: int) -> dict:
    """What is predicted; in more than one round parts are measured anew beside each real run."""
    kept = options.work / f"recordings-{parts.name}-{algorithm.replace('/', '-')}-{options.hidden_feats}"
    if options.rounds > 1:
        kept = kept.with_name(f"{kept.name}-{prices.stem}-{number}")
    words = ["--threads", 1, "--at-once", 2, "--repeats", options.repeats, "--recordings", kept]
    done = distgnn("replay", parts, *words_of(options, algorithm), *words, "--network", prices, "--json")
    return json.loads(done.stdout)["replays"][0]


def trained(options: argparse.Namespace, rate: str, parts: Path, algorithm: str) -> dict:
    """The summary of a real run on two hosts."""
    from hosts import hosts

    folder = options.work / "run"
    words = ["train", parts, *words_of(options, algorithm), "--epochs", options.epochs, "--eval-every", options.epochs]
    words += ["--threads", 1, "--run-dir", folder, "--overwrite", "--quiet"]
    with hosts(2, rate) as run:
        run("-m", "distgnn.cli", *words)
    # The later half: until then late rows fill their buffers, and memory is taken for the first time.
    records = [json.loads(text) for text in (folder / "metrics.jsonl").read_text().splitlines()][options.epochs // 2 :]
    times = [one["seconds"] for one in records]
    waiting = statistics.median(one["wait_seconds_mean"] + one["all_reduce_seconds"] for one in records)
    return json.loads((folder / "summary.json").read_text()) | {
        "waiting": waiting,
        "seconds": statistics.median(times),
        "quartiles": np.percentile(times, [25, 75]).tolist(),
    }


def compared(predicted: dict, real: dict) -> dict:
    """A row of the table."""
    seconds, memory = real["seconds"], max(real["peak_rss_bytes"])
    found = {"predicted_seconds": predicted["seconds"], "real_seconds": seconds}
    found["error"] = predicted["seconds"] / seconds - 1
    found |= {"predicted_memory": max(rank["peak_rss_bytes"] for rank in predicted["of_rank"]), "real_memory": memory}
    found["memory_error"] = found["predicted_memory"] / memory - 1
    found["bytes_equal"] = predicted["pair_bytes"] == real["pair_bytes_per_epoch"]
    waits = statistics.fmean(rank["wait_seconds"] for rank in predicted["of_rank"])
    found |= {"predicted_wait": waits, "real_wait": real["waiting"], "real_quartiles": real["quartiles"]}
    return found | {"compute_seconds": max(rank["compute_seconds"] for rank in predicted["of_rank"])}


def line(row: dict) -> str:
    """A Markdown row."""
    cells = [
        row["rate"],
        row["graph"],
        row["algorithm"],
        f"{row['predicted_seconds']:.4f}",
        f"{row['real_seconds']:.4f}",
    ]
    cells += [
        f"{100 * row['error']:+.1f} %",
        f"{row['predicted_wait']:.4f}",
        f"{row['real_wait']:.4f}",
        f"{1e-6 * row['predicted_memory']:.0f}",
        f"{1e-6 * row['real_memory']:.0f}",
    ]
    return "| " + " | ".join([*cells, f"{100 * row['memory_error']:+.1f} %", str(row["bytes_equal"])]) + " |"


def table(rows: list[dict]) -> None:
    """All rows, the median and the worst."""
    titles = "link | graph | algorithm | replayed s | real s | error | waits: predicted | real | MB | real MB"
    print(f"\n| {titles} | error | bytes equal |\n|{12 * '---|'}")
    for row in rows:
        print(line(row))
    for name, what in (("error", "epoch"), ("memory_error", "memory")):
        errors = [abs(row[name]) for row in rows]
        print(f"\n{what}: median error {100 * statistics.median(errors):.1f} %, worst {100 * max(errors):.1f} %")


if __name__ == "__main__":
    main()
