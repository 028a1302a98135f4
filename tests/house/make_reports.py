"""Write the tables of docs/benchmarks from the JSON beside each page: `python tests/house/make_reports.py`.

A page names its tables: the lines after `<!-- table: NAME -->` come from `PAGE.json`. A function below makes the table
of what a command wrote; without one it is `tables.NAME` of the file, as it was written down from a run's output.
"""

import json
import re
import statistics
from collections.abc import Callable
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "benchmarks"
TABLE = re.compile(r"(<!-- table: ([\w-]+) -->\n)((?:\|.*\n)*)")
Rows = list[list[str]]  # the first one is the head


def pages() -> list[Path]:
    return sorted(path for path in FOLDER.glob("*.md") if path.name != "index.md")


def page(file: Path) -> str:
    """The page with the tables that its JSON gives."""
    data = json.loads(file.with_suffix(".json").read_text())
    return TABLE.sub(lambda match: match[1] + _markdown(table(file.stem, match[2], data)), file.read_text())


def table(stem: str, name: str, data: dict) -> Rows:
    if (stem, name) in MADE:
        return MADE[stem, name](data)
    written = data["tables"][name]
    return [written["columns"], *written["rows"]]


def _markdown(rows: Rows) -> str:
    head, *lines = ["| " + " | ".join(row) + " |\n" for row in rows]
    return "".join([head, "|" + "---|" * len(rows[0]) + "\n", *lines])


def _mean(values) -> float:
    return statistics.geometric_mean(values)


def _users(data: dict) -> Rows:
    rows, ratios = [], []
    for one in data["rows"]:
        took = one["milliseconds"]
        ours, narrow = took["script float32"], took["script bfloat16"]
        peers = {"dgl": took["dgl"], "pyg": min(took["pyg"], took["pyg/edges"])}
        ratio = [peers["dgl"] / ours, peers["pyg"] / ours]
        ratio += [took["dgl/bfloat16"] / narrow, took["pyg/edges/bfloat16"] / narrow]
        ratios.append(ratio)
        model = {"gcn": "GCN", "sage": "GraphSAGE", "gat": "GAT"}[one["model"]]
        numbers = [f"{took['dgl']:,.0f}", f"{peers['pyg']:,.0f}", f"{ours:,.0f}", f"{took['train float32']:,.0f}"]
        rows.append([f"{one['graph']}, {model}", *numbers, *(f"{value:.1f}" for value in ratio)])
    head = ["", "DGL, ms", "PyG, ms", "script, ms", "`distgnn train`, ms", "× DGL", "× PyG", "bfloat16: × DGL", "× PyG"]
    means = [f"{_mean(column):.1f}" for column in zip(*ratios, strict=True)]
    return [head, *rows, ["geometric mean", "", "", "", "", *means]]


def _startup(data: dict) -> Rows:
    rows = [["processor", "one rank, s", "its processor time, s", "two ranks, s", "their processor time, s"]]
    new = data["startup_zen5"]["after"]
    for name, runs in (("Zen 4", data["startup"]), ("Zen 5", {key: new[key][0] for key in ("1 rank", "2 ranks")})):
        one, two = runs["1 rank"], runs["2 ranks"]
        numbers = (statistics.median(one["total"]), one["processor"], statistics.median(two["total"]), two["processor"])
        rows.append([name, *(f"{number:.2f}" for number in numbers)])
    return rows


def _columns(data: dict) -> Rows:
    head = ["hosts, rate", "ranks a part", "halo rows a vertex", "all-to-all rows", "epoch, s"]
    rows = [[*head, "of one rank a part", "MB sent"]]
    for name, run in data.items():
        if not isinstance(run, dict):
            continue
        first = run["rows"]["1"]["epoch"][0]
        for columns, row in run["rows"].items():
            median, spread = row["epoch"]
            link = re.sub(r"([mg])bit", lambda match: f" {match[1].upper()}bit/s", name)
            counts = [f"{row['rows']:.2f}", f"{row['all_to_all_rows']:.2f}"]
            epoch = [f"{median:.3f} ± {spread:.3f}", f"{median / first:.2f}", f"{row['sent_bytes'] / 1e6:.1f}"]
            rows.append([link, columns, *counts, *epoch])
    return rows


def _nodes(data: dict) -> Rows:
    names = {"com": "amazon-computers", "rmat": "RMAT", "arxiv": "ogbn-arxiv"}
    links = {"1gbit": "2 × 2, 1 Gbit/s", "10gbit": "2 × 2, 10 Gbit/s"}
    rows = [["graph", "nodes × ranks", "way", "exchange, ms", "rows between nodes", "epoch, s", "MB between nodes"]]
    rates = ["1gbit", "10gbit", "mem"]
    for name, run in sorted(data["runs"].items(), key=lambda item: (rates.index(item[0].split("-")[2]), item[0])):
        graph, ranks, link = name.split("-")
        for way, row in run["rows"].items():
            exchange, epoch = ([f"{value * unit:.{digits}f}" for value in row[key]] for key, unit, digits in _EXCHANGE)
            between = [f"{row['rows_between']:,}", " ± ".join(epoch), f"{row['bytes_between_nodes'] / 1e6:.2f}"]
            rows.append([names[graph], links.get(link, f"1 × {ranks}"), way, " ± ".join(exchange), *between])
    return rows


_EXCHANGE = (("exchange", 1e3, 2), ("epoch", 1, 3))


def _pyg(data: dict) -> Rows:
    head = ["model", "plain PyG, `edge_index`, s", "plain PyG, CSR, s", "PyG's layers on our graph, s", "our layers, s"]
    rows = [[*head, "× quicker plain form", "× our layers", "of plain PyG's memory"]]
    for name, key in (("GCN", "gcn, later"), ("SAGE", "sage"), ("GAT", "gat")):
        took, memory = data[key]["seconds"], data[key]["MB"]
        plain = min(took[form] for form in ("edge_index", "csr") if form in took)
        peak = memory["pyg on us"] / memory.get("csr", memory.get("edge_index"))
        seconds = [f"{took[form]:.3f}" if form in took else "–" for form in ("edge_index", "csr", "pyg on us", "ours")]
        ratios = [plain / took["pyg on us"], took["pyg on us"] / took["ours"], peak]
        rows.append([name, *seconds, *(f"{value:.2f}" for value in ratios)])
    return rows


def _replay(data: dict) -> Rows:
    links = {"10gbit": "10 Gbit/s", "1gbit": "1 Gbit/s", "100mbit": "0.1 Gbit/s"}
    rows = [["link", "graph", "algorithm", "replayed, s", "real, s", "least to most, real", "error", "memory error"]]
    cases: dict[tuple, list[dict]] = {}
    for row in data["rows"]:
        cases.setdefault((row["rate"], row["graph"], row["algorithm"]), []).append(row)
    for runs in cases.values():
        keys = ("predicted_seconds", "real_seconds", "predicted_memory", "real_memory")
        predicted, real, told, used = (statistics.median(run[key] for run in runs) for key in keys)
        name = runs[0]["graph"]
        graph = "RMAT 2^17" if name.startswith("rmat") else name.removeprefix("ogb/").replace("_", "-")
        span = [run["real_seconds"] for run in runs]
        errors = [f"{value:+.1%}".replace("%", " %") for value in (predicted / real - 1, told / used - 1)]
        seconds = [f"{predicted:.3f}", f"{real:.3f}", f"{min(span):.3f} to {max(span):.3f}"]
        rows.append([links[runs[0]["rate"]], graph, runs[0]["algorithm"], *seconds, *errors])
    return rows


def _scaling(data: dict) -> Rows:
    head = ["graph", "ranks", "copies a vertex", "Libra's, real graph", "a rank is"]
    rows = [[*head, *(f"`{name}`: 10 / 25 / 100 Gbit/s" for name in ("cd-0", "cd-5", "0c"))]]
    found: dict[tuple, dict] = {}
    for row in data["scaling"]:
        found.setdefault((row["graph"], row["ranks"], row["speed"]), {})[row["algorithm"], row["network"]] = row
    for (graph, ranks, speed), lines in found.items():
        if ranks not in (8, 32, 64, 128):
            continue
        one = lines["cd-0", "10gbit"]
        libra = str(one["libra_on_the_real_graph"] or "–")
        cells = [
            " / ".join(f"{lines[name, f'{rate}gbit']['speedup']:.1f}" for rate in (10, 25, 100))
            for name in ("cd-0", "cd-5", "0c")
        ]
        counts = [f"{one['replication_factor']:.2f}", libra, "one thread" if speed == 1 else f"{speed:.0f} times one"]
        rows.append([graph, str(ranks), *counts, *cells])
    return rows


def _reached(row: dict, limit: float) -> str:
    if row["seconds_to_target"] is None:
        return f"{row['reached']} of {row['seeds']} in {limit:.0f} s"
    return f"{row['seconds_to_target']:.2f} ({row['passes_to_target']})"


_RUNS = ("best", "between", "sampling")


def _accuracy_times(data: dict) -> Rows:
    head = ["to", "Adam, better of 0.01 and 0.001", "Adam 0.003 (1 seed)", "DGL sampling, 0.001", "0.003"]
    rows, gains = [[*head, "`--recipe fast`", "× Adam", "× better sampling"]], ([], [])
    for graph, runs in data["graphs"].items():
        best, between, sampling = (runs.get(f"{name}, 1 rank", {"rows": []}) for name in _RUNS)
        adam, recipe = best["rows"]
        cells = [f"{adam['contestant'].split()[-1]}: {_reached(adam, best['limit_seconds'])}"]
        cells.append(_reached(between["rows"][0], between["limit_seconds"]) if between["rows"] else "")
        cells += [_reached(row, sampling["limit_seconds"]) for row in sampling["rows"]] or ["", ""]
        ratios = []
        for gain, run, others in ((gains[0], best, [adam]), (gains[1], sampling, sampling["rows"])):
            times = [row["seconds_to_target"] for row in others if row["seconds_to_target"] is not None]
            if others:  # who does not arrive counts with its limit
                gain.append((min(times) if times else run["limit_seconds"]) / recipe["seconds_to_target"])
            ratios.append(f"{'' if times else '>'}{gain[-1]:.1f}" if others else "")
        target = f"{graph} {best['target']:.1%}".replace("%", " %")
        rows.append([target, *cells, f"**{_reached(recipe, best['limit_seconds'])}**", *ratios])
    return [*rows, ["geometric mean", "", "", "", "", "", *(f"{_mean(gain):.1f}" for gain in gains)]]


def _accuracies(data: dict) -> Rows:
    rows = [["validation / test, %", "Adam, better rate", "Adam 0.003", "sampling, 0.001", "0.003", "`--recipe fast`"]]
    for graph, runs in data["graphs"].items():
        best, between, sampling = (runs.get(f"{name}, 1 rank", {"rows": []})["rows"] for name in _RUNS)
        chosen = [best[0], *(between[:1] or [None]), *(sampling or [None, None]), best[1]]
        cells = [f"{100 * row['best_valid']:.1f} / {100 * row['test_at_best']:.1f}" if row else "" for row in chosen]
        rows.append([graph, *cells])
    return rows


def _communication(data: dict) -> Rows:
    names = ("paper", "cd-0", "cd-0/bfloat16", "cd-5/int8", "0c")
    head = ["graph, link", "paper's form, s", *(f"`{name}`, s (× paper)" for name in names[1:])]
    rows = [[*head, "MB: paper's form", "`cd-0`", "`cd-5/int8`"]]
    for one in data["links"]:
        column = {name: place for place, name in enumerate(one["columns"])}
        lines = {row[0]: row for row in one["rows"]}
        rate = re.search(r"([\d.]+) Gbit/s", one["about"])
        graph = one["about"].split(",")[0].split(" cut")[0] + (", Libra's cut" if "libra" in one["about"] else "")
        others = [lines.get(name) for name in names[1:]]
        cells = [f"{line[column['epoch']]} ({line[column['× paper']]})" if line else "" for line in others]
        sent = [lines[name][column["MB"]] if name in lines else "" for name in ("paper", "cd-0", "cd-5/int8")]
        rows.append([f"{graph}, {rate and rate[1]} Gbit/s", lines["paper"][column["epoch"]], *cells, *sent])
    return rows


def _late_rows(data: dict) -> Rows:
    first = next(iter(data["graphs"].values()))["columns"]
    rows = [["graph", first[0], first[1], first[2], first[3], first[-1]]]
    for graph, one in data["graphs"].items():
        lines = [row for row in one["rows"] if "adaptive" not in row[0]]  # an option that is gone
        rows += [[graph, f"`{row[0]}`", row[1], row[2], row[3], row[-1]] for row in lines]
    return rows


def _links(data: dict) -> Rows:
    rows = [["graph", "side", "seeds", "test MRR, %", "test ROC-AUC, %"]]
    for graph, sides in data["links"].items():
        for side in ("1 rank", "2 ranks", "PyTorch"):
            numbers = [sides[side][key] for key in ("test_mrr", "test_rocauc")]
            spread = [f"{statistics.mean(values):.2f} ± {statistics.stdev(values):.2f}" for values in numbers]
            rows.append([graph, "plain PyTorch" if side == "PyTorch" else side, str(len(numbers[0])), *spread])
    return rows


def _checks(data: dict) -> Rows:
    rows = [["processor", "checks of kernels", "wrong"]]
    names = {"Haswell": "Haswell: AVX2", "Nehalem": "Nehalem: SSE4.2", "aarch64": "64-bit Arm: NEON"}
    for key, name in names.items():
        checks = data["checks"][key]
        rows.append([f"{name} (emulated)", str(len(checks)), str(sum(not check["ok"] for check in checks))])
    return rows


MADE: dict[tuple[str, str], Callable[[dict], Rows]] = {
    ("users", "epochs"): _users,
    ("users", "start-up"): _startup,
    ("columns", "epochs"): _columns,
    ("nodes", "exchanges"): _nodes,
    ("pyg", "steps"): _pyg,
    ("replay", "epochs"): _replay,
    ("scaling", "speed-ups"): _scaling,
    ("time-to-accuracy", "times"): _accuracy_times,
    ("time-to-accuracy", "accuracies"): _accuracies,
    ("communication", "links"): _communication,
    ("late-rows", "accuracies"): _late_rows,
    ("accuracy", "links"): _links,
    ("processors", "checks"): _checks,
}

if __name__ == "__main__":
    for file in pages():
        file.write_text(page(file))
