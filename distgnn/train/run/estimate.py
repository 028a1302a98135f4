"""How much memory a rank will need, from partition.json alone: said before anything is loaded.

Legend: O owned rows, H halo rows, A local arcs, D feature width, W hidden width, L layers. Of tasks on pairs: m
training pairs, k negatives drawn for them, e negatives of an evaluation, B borrowed rows (ends that others own).

| what | bytes |
|---|---|
| the program | PRIVATE_BYTES |
| its libraries | SHARED_BYTES, once for all ranks of a machine |
| features, and the kept aggregation of them | 2 · O · D · bytes of the dtype |
| structure | the part's files without features, and ids of arcs where no model needs them; arcs of the way back again |
| hidden layers, see KEEPS | (each · L + besides) · O · W · item; with remat see below |
| with offload | at most the larger of WORKING (`distgnn/ops/buffers.py`) and a layer's, of these; no features: their \
pages and those of rows read ahead are of files, and the kernel takes them when it needs memory. Outputs of exact sage \
and gcn lie beside one of the rows at work |
| outputs | (OUTPUT_ROWS, or of late sage and gcn LATE_OUTPUT_ROWS, + of the model) · O · C · item |
| messages | (sent + received) · the widest exchange · item: all exchanges use one memory |
| late rows of cd-R | held ones, 2 · received · widths; target halos of a warm-up, or late messages, the larger |
| a sum of late rows | each layer between hidden rows, and one that does not narrow: O · W · item |
| rows of arcs | `_numbers_of_arcs` |
| rows that steps of an extra hold | as it says |
| scores of pairs: both ends' rows | TABLES · (O + B) · W · item on several ranks |
| scores of pairs: ids, places, scores | BYTES_PER_PAIR · m, BYTES_PER_NEGATIVE · (k + e) |
| scores of pairs: one block in the decoder | ROWS_PER_PAIR · BLOCK_PAIRS · W · item |

KEEPS is what ledgers of runs say (`train --memory-report`); tests/bench/memory/peaks.py compares estimates with peaks.
Those of pairs are guesses from what their scores keep: beside a peak on two ranks
of 60,000 vertices (sage 3 × 128, one negative a pair) the estimate was 1.2 times as much, and 0.7 without them. A rank
has 200 MB of its own and 190 MB of pages of libraries that all ranks map; one that compiles kernels has 100 MB more.
"""

from typing import Any, NamedTuple

from distgnn.config.extras import attached, sees_all_rows
from distgnn.config.model import DEEP_MODELS
from distgnn.config.schedule import row_bytes
from distgnn.config.task import HELD_OUT, PAIR_TASKS, of_target, target_type
from distgnn.errors import RunError
from distgnn.system.free_memory import ADDRESS_BYTES, address_limit, available_bytes

PRIVATE_BYTES = 345_000_000  # 200 MB with tiny graphs, 100 MB more of one that compiles, and small temporaries
SHARED_BYTES = 190_000_000
ITEM_BYTES = {"float32": 4, "float64": 8, "bfloat16": 3}  # of what a step makes: outputs of bfloat16 rows are float32
INPUT_BYTES = ITEM_BYTES | {"bfloat16": 2}


class Keeps(NamedTuple):
    """What a model keeps at its peak, in rows of all vertices.

    Args: each: hidden rows [O, W] of a hidden layer with a norm; plain: without; besides: hidden rows once; outputs:
        rows as wide as the output [O, C], beside OUTPUT_ROWS; layers: hidden layers beyond `num_layers` - 1; halos:
        rows beside messages, as a multiple of them; by_arc: needs the ids of arcs, and the arcs turned round.
    """

    each: float
    plain: float
    besides: float = 1.0
    outputs: float = 0.0
    layers: int = 0
    halos: float = 0.0
    by_arc: bool = False


KEEPS = {
    "sage": Keeps(1, 1, 1.3),
    "gcn": Keeps(1, 1, 1.3),
    "gin": Keeps(3.7, 3.7, 0.8),
    "gat": Keeps(2.8, 1.9, 0.3, outputs=1, halos=1.9, by_arc=True),
    "gatv2": Keeps(9.1, 9.1, 0, by_arc=True),
    "gcn2": Keeps(2, 2, 0, layers=2),
    "appnp": Keeps(1, 1, 0.1, outputs=1.5),
    "gine": Keeps(4.2, 4.2, 0.8, by_arc=True),
    "edgegat": Keeps(2.8, 1.9, 0.3, outputs=1, halos=1.9, by_arc=True),
    "rgcn": Keeps(1, 1, 5, by_arc=True),
}
TYPED_KEEPS = {"rgcn": (105, 3.4), "rgat": (127, 4.8), "hgt": (155, 14.5)}  # bytes of an arc; hidden rows of a layer
TABLE_ROWS = 5  # of a table: weights, gradient, two moments, best
WHOLE_TABLES = 3  # of rank 0, which writes them
REMAT_BESIDES, ATTENTION_BESIDES = 2.4, 1.6  # with --remat
REMAT_GIN, REMAT_GAT = 4.6, 2.6  # the same beside the layers' inputs, of gat on one rank
ALONE_GAT = -1.3  # of gat with a norm on one rank: z of the last layer lies where its input was
JUMP_ROWS = 9.5
PREACT_ROWS = 5.0
GINE_ROWS, RGCN_ROWS = 3.7, 3.0  # of each arc, and of each pair of a relation and a target in a chunk
CHUNK_SHARE, LEAST_CHUNK = 4, 1 << 14  # of a part's rows, and pairs: a chunk (distgnn/ops/edges/relation_arcs.py)
NARROW_BYTES = 40_000_000  # blocks of bfloat16 rows that are widened, where torch multiplies them
OUTPUT_ROWS = 4
LATE_OUTPUT_ROWS, LATE_BESIDES = 2.3, -0.16  # of late schedules: pools of sage hold 4.12 hidden rows and 2.2 outputs
LATE_ATTENTION = 1.0
IN_PIECES = 32 << 20  # bytes of messages that travel in pieces: two pieces both ways (distgnn/comm/exchange.py)
TABLES, BYTES_PER_PAIR, BYTES_PER_NEGATIVE = 4, 100, 200
ID_BYTES, PAIR_BYTES = 8, 16  # in a part's files
ROWS_PER_PAIR, BLOCK_PAIRS = 12, 1 << 15  # the block: distgnn/nn/pair_predictor.py


def estimate_bytes(manifest: dict[str, Any], part_id: int, settings: dict[str, Any]) -> int:
    """Peak memory of a rank that has part `part_id`, with the libraries that ranks share.

    Args: settings: sections [model] and [run] of config.toml, [train] for tasks on pairs, rows in files and extras.
    """
    return sum(estimate_blocks(manifest, part_id, settings).values())


def estimate_blocks(manifest: dict[str, Any], part_id: int, settings: dict[str, Any]) -> dict[str, int]:
    """The blocks of `estimate_bytes` by name, in bytes: the table above."""
    part, graph, model, run = manifest["parts"][part_id], manifest["graph"], settings["model"], settings["run"]
    if graph.get("types") and model["name"] in TYPED_KEEPS:
        return _typed_blocks(manifest, part_id, settings)
    item, train = ITEM_BYTES[run["dtype"]], settings.get("train", {})
    rows = part["rows"] if sees_all_rows(run) else part["owned"]
    width, layers, outputs = model["hidden_feats"], max(model["num_layers"] - 1, 1), graph["num_classes"]
    keeps = KEEPS[model["name"]]
    exchanged = sum(manifest["pair_rows"][part_id]) + sum(row[part_id] for row in manifest["pair_rows"])
    alone = not exchanged and manifest.get("num_parts", 1) == 1
    is_alone_gat = alone and model["name"] == "gat" and not model.get("weighted")
    by_arc = (keeps.by_arc and not is_alone_gat) or bool(model.get("weighted"))
    unread = [name for name in part["files"] if name.startswith("feats") or (name == "arc_ids" and not by_arc)]
    structure = sum(entry["bytes"] for name, entry in part["files"].items() if name not in unread)
    structure += 12 * part["arcs"] if by_arc or not part["symmetric"] else 0
    kept = _kept_rows(keeps, model, layers, run["dtype"], is_alone_gat, outputs)
    kept = _not_in_files(kept, layers) if train.get("offload") else kept
    # Layers from hidden rows to hidden rows; late rows of gcn2's further ones take half of theirs, as measured
    inner = max(model["num_layers"] - 2, 0) + keeps.layers / 2
    last = min(outputs, width)
    of_training = inner * width + last + (0 if run.get("cache_first", True) else min(graph["num_feats"], width))
    messages = exchanged * (1 + keeps.halos) * max(width if inner else last, graph["num_feats"])
    output_rows: float = OUTPUT_ROWS
    if run["algorithm"] != "cd-0":
        messages = _late_rows(manifest, part_id, run, of_training, messages)
        kept += inner + (outputs >= width)  # a sum of late rows is kept: it cannot be made again
        if model["name"] in ("sage", "gcn"):
            kept, output_rows = kept + LATE_BESIDES, LATE_OUTPUT_ROWS
        elif keeps.halos:
            kept += LATE_ATTENTION
    elif train.get("offload"):
        # Packed rows and partial sums, half of them, travel in pieces.
        messages = messages / 2 + min(messages / 2, IN_PIECES / item)
        if model["name"] in ("sage", "gcn"):
            output_rows = max(0.0, output_rows - width / max(outputs, 1))
    messages += sum(held(part, settings) for held in attached("estimate"))
    pairs = 0
    if train.get("task") in PAIR_TASKS:
        outputs, pairs = width, _bytes_of_pairs(manifest, part_id, train, width * item)
    # Of sage and gcn all hidden rows of an exact step are narrow; of others some are float32, as outputs are.
    narrow = run["dtype"] == "bfloat16" and model["name"] in ("sage", "gcn") and run["algorithm"] == "cd-0"
    inputs = 0 if train.get("offload") else rows * graph["num_feats"] * INPUT_BYTES[run["dtype"]]
    of_hidden, of_outputs = (2 / item, 4 / item) if narrow else (1, 1)
    numbers = {
        "hidden rows": of_hidden * rows * kept * width,
        "outputs": of_outputs * rows * (output_rows + keeps.outputs) * outputs,
        "rows of arcs": _numbers_of_arcs(part, graph, model),
        "messages and held rows": messages,
    }
    return {
        "program": PRIVATE_BYTES + SHARED_BYTES + (NARROW_BYTES if run["dtype"] == "bfloat16" else 0),
        "structure": structure,
        "pairs": pairs,
        "features": inputs,
        "kept aggregation": 0 if is_alone_gat else inputs,
        **{name: int(item * count) for name, count in numbers.items()},
    }


def _typed_blocks(manifest: dict[str, Any], part_id: int, settings: dict[str, Any]) -> dict[str, int]:
    """The blocks of a model of types. Fitted to ledgers of runs of two layers."""
    part, graph, model, run = manifest["parts"][part_id], manifest["graph"], settings["model"], settings["run"]
    target = target_type(graph, settings.get("train", {}).get("target")) or graph["types"][0]
    (of_arc, each), item, width = TYPED_KEEPS[model["name"]], ITEM_BYTES[run["dtype"]], model["hidden_feats"]
    widths = [columns["feats"][1] if (columns := graph["typed"].get(k, {})).get("feats") else 0 for k in graph["types"]]
    here, everywhere = part["type_rows"], graph["type_counts"]
    tables = [
        sum(count for count, wide in zip(counts, widths, strict=True) if not wide) for counts in (here, everywhere)
    ]
    classes = of_target(graph, target)["num_classes"]
    exchanged = sum(manifest["pair_rows"][part_id]) + sum(row[part_id] for row in manifest["pair_rows"])
    return {
        "program": PRIVATE_BYTES + SHARED_BYTES,
        "structure": of_arc * part["arcs"],
        "features": item * sum(count * wide for count, wide in zip(here, widths, strict=True)),
        "tables": item * width * (TABLE_ROWS * tables[0] + (not part_id) * WHOLE_TABLES * tables[1]),
        "hidden rows": int(item * width * each * model["num_layers"] * part["owned"]),
        "outputs": item * OUTPUT_ROWS * classes * here[graph["types"].index(target)],
        "messages and held rows": item * 2 * width * exchanged,
    }


def _not_in_files(kept: float, layers: int) -> float:
    """Of hidden rows that `--offload` sends out, those in memory."""
    from distgnn.ops.buffers import WORKING  # the module starts MPI

    return min(kept, max(WORKING, kept / layers))


def _kept_rows(keeps: Keeps, model: dict, layers: int, dtype: str, is_alone_gat: bool, classes: int) -> float:
    """Hidden rows [O, W] at the peak. Args: is_alone_gat: gat on one rank."""
    layers += keeps.layers
    each = keeps.plain if model.get("norm", "layer") == "none" else keeps.each
    block, head = model.get("block", "plain"), model.get("head", "conv")
    in_one = model["name"] in ("sage", "gcn") and model.get("residual", "linear") == "linear"
    each += 1.5 * (block == "residual" and not in_one)  # the layer's sum, and what it added
    each += PREACT_ROWS * (block == "preact")
    layers += (head == "linear" or block == "preact") + (model.get("stem", "none") != "none" or block == "preact")
    each += dtype == "float64"  # what is made again in pieces of narrower rows is kept
    kept = layers * each + keeps.besides
    plain = block == "plain" and head in ("conv", "linear")
    # What the last layer makes has the place of its input where it is no wider.
    narrows = dtype == "float32" and model.get("num_heads", 4) * classes <= model["hidden_feats"]
    of_gat = is_alone_gat and plain and narrows
    kept += ALONE_GAT * (of_gat and model.get("norm", "layer") != "none")
    if model.get("remat"):
        kept = layers + each + (ATTENTION_BESIDES if keeps.by_arc else REMAT_BESIDES)
        if model["name"] in ("sage", "gcn") and block == "plain":
            # The first layer is made again; outputs stand beside rows of the last.
            kept = max(layers, 2) * each
        elif of_gat or (plain and model["name"] == "gin"):
            kept = layers + (REMAT_GAT if of_gat else REMAT_GIN)
    return kept + JUMP_ROWS * layers * (head in ("cat", "max"))


def _numbers_of_arcs(part: dict, graph: dict, model: dict) -> float:
    """Of models that keep rows of arcs, or of pairs of a relation and a target."""
    name, width, layers = model["name"], model["hidden_feats"], model["num_layers"]
    widths = [graph["num_feats"], *[width] * (layers - 1), graph["num_classes"]]
    if name == "gine":
        return GINE_ROWS * part["arcs"] * sum(widths[:-1])
    if name == "edgegat":
        return part["arcs"] * layers * model.get("num_heads", 4) * (graph["num_edge_feats"] + 2)
    if name == "rgcn":
        # Where the manifest does not say it, every arc may be a pair of its own.
        pairs = part.get("relation_targets", min(part["arcs"], graph["num_relations"] * part["rows"]))
        return RGCN_ROWS * min(pairs, max(part["rows"] // CHUNK_SHARE, LEAST_CHUNK)) * width
    return 0


def _late_rows(manifest: dict, part_id: int, run: dict, width: float, exact: float) -> float:
    """Numbers of messages and held rows of a delayed schedule, at the end of its warm-up or behind it.

    Args: width: of the rows of all exchanges of a step; exact: numbers of exact messages.
    """
    sent = sum(manifest["pair_rows"][part_id])
    received = sum(row[part_id] for row in manifest["pair_rows"])
    wires = [run.get(name) or run.get("wire") or "float32" for name in ("wire", "wire_backward")]
    columns = max(1, int(width))
    shares = [row_bytes(columns, wire) / row_bytes(columns, "float32") for wire in wires]
    bins = int(run["algorithm"].removeprefix("cd-"))
    held = 2 * received * width
    coming = sum(share * (sent / bins + received) for share in shares) * width
    targets = exact / 4  # of what is sent and received, both ways
    first = held + coming + targets / bins
    if wires == ["float32", "float32"]:
        return max(held + targets, first)
    narrower = held * (1 - sum(shares) / 2) / bins  # when the first bin has arrived: the others are widened beside it
    return max(held + targets, first, first - narrower + targets)


def _bytes_of_pairs(manifest: dict, part_id: int, train: dict, row_bytes: int) -> int:
    part = manifest["parts"][part_id]

    def count(name: str, bytes_each: int) -> int:
        return int(part["files"].get(name, {"bytes": 0})["bytes"] // bytes_each)

    pairs = count("train_edges", PAIR_BYTES)
    drawn = pairs * train.get("num_negatives", 1) if train["task"] == "link" else 0
    evaluated = sum(
        count(f"{split}_negatives", PAIR_BYTES) + count(f"{split}_negative_targets", ID_BYTES) for split in HELD_OUT
    )
    elsewhere = manifest["num_nodes"] - part["owned"]
    borrowed = min(elsewhere, pairs) + min(elsewhere, 2 * drawn)
    tables = TABLES * (part["owned"] + borrowed) * row_bytes if manifest["num_parts"] > 1 else 0
    block = ROWS_PER_PAIR * min(BLOCK_PAIRS, max(pairs, drawn, evaluated)) * row_bytes
    return tables + block + BYTES_PER_PAIR * pairs + BYTES_PER_NEGATIVE * (drawn + evaluated)


def together_bytes(needed: list[int]) -> int:
    """Peak memory of ranks on one machine, each of which needs so much: their libraries count once."""
    return sum(needed) - (len(needed) - 1) * SHARED_BYTES


def check_memory(comm: Any, manifest: dict[str, Any], settings: dict[str, Any], limit: int | None) -> None:
    """Raise RunError on every rank, before anything is loaded, for a run whose ranks would not fit into memory: with
    the numbers and what would fit.

    Collective: yes. Args: limit: bytes per rank; None: what is free on each machine, shared by its ranks.
    """
    from distgnn.comm import raise_together

    ranks, free = _machine(comm)
    needed = estimate_bytes(manifest, comm.rank, settings)
    most, addresses = address_limit(), ADDRESS_BYTES + needed - PRIVATE_BYTES - SHARED_BYTES
    with raise_together(comm):
        if most is not None and most < addresses:
            raise RunError(
                f"no memory for rank {comm.rank}: it needs about {_gb(addresses)} of addresses, and may have "
                f"{_gb(most)} (ulimit -v): raise the limit"
            )
        _check_fits(manifest, settings, limit, ranks, free, comm.rank)


def check_memory_here(manifest: dict[str, Any], settings: dict[str, Any], limit: int | None, num_ranks: int) -> None:
    """The same before ranks are started on this machine. Raises: RunError. Args: limit: as of `check_memory`."""
    largest = max(range(num_ranks), key=lambda rank: estimate_bytes(manifest, rank, settings))
    _check_fits(manifest, settings, limit, list(range(num_ranks)), available_bytes(), largest)


def _check_fits(
    manifest: dict[str, Any], settings: dict[str, Any], limit: int | None, ranks: list[int], free: int, rank: int
) -> None:
    """Raise RunError where `rank`, or all `ranks` of its machine, do not fit. Args: free: there, in bytes."""
    needed, together, free = _needs(manifest, settings, limit, ranks, free, rank)
    if together <= free:
        return
    where = "rank" if limit is not None else f"machine, shared by {len(ranks)} ranks"
    fixed = together_bytes([PRIVATE_BYTES + SHARED_BYTES] * (1 if limit is not None else len(ranks)))
    fewer = (free - SHARED_BYTES - (together - fixed)) // PRIVATE_BYTES
    if fixed < free:
        found = [
            f"{words} ({_gb(less)})"
            for words, other in _frugal(settings).items()
            if (less := _needs(manifest, settings | other, limit, ranks, free, rank)[1]) <= free
        ]
        fits = f"take {' or '.join(found)}, or " if found else ""
        parts = manifest["num_parts"] * max(2, -(-(together - fixed) // (free - fixed)))
        advice = (
            f"{fits}take more parts (distgnn repartition … --parts {parts}) on more machines, a smaller --hidden-feats"
            ", or set --memory if the estimate is wrong"
        )
    elif limit is not None:
        advice = f"the program and its libraries alone take {_gb(fixed)}: raise --memory"
    elif fewer > 0:
        advice = (
            f"programs and libraries alone take {_gb(fixed)}: take fewer ranks (distgnn repartition … --parts {fewer} "
            "--merge), or more machines (distgnn launch --hosts FILE)"
        )
    else:
        advice = f"programs and libraries alone take {_gb(fixed)}: take a machine with more memory, or more of them"
    raise RunError(
        f"rank {rank} needs about {_gb(needed)}, and {_gb(free)} are there per {where} (needed there: {_gb(together)})"
        f": {advice}"
    )


def _frugal(settings: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Options that need less memory, and the sections that they change."""
    model, run, train = settings["model"], settings["run"], settings.get("train", {})
    options: dict[str, dict] = {}
    if run["dtype"] == "float32" and run.get("wire") in (None, "float32"):
        options["--dtype bfloat16"] = {"run": run | {"dtype": "bfloat16"}}
    exact = run["algorithm"] == "cd-0" and run.get("wire") in (None, "float32")
    if exact and not model.get("remat") and model["name"] not in DEEP_MODELS and model.get("norm") != "batch":
        options["--remat"] = {"model": model | {"remat": True}}
    if not train.get("offload"):
        options["--offload DIR"] = {"train": train | {"offload": "DIR"}}
    return options


def needs(comm: Any, manifest: dict[str, Any], settings: dict[str, Any], limit: int | None) -> tuple[int, int, int]:
    """Bytes that this rank needs, those that count against what is there (of all ranks of its machine, or with a limit
    of this one), and what is there. Collective: yes."""
    return _needs(manifest, settings, limit, *_machine(comm), comm.rank)


def _needs(
    manifest: dict[str, Any], settings: dict[str, Any], limit: int | None, ranks: list[int], free: int, rank: int
) -> tuple[int, int, int]:
    needed = estimate_bytes(manifest, rank, settings)
    if limit is not None:
        return needed, needed, limit
    return needed, together_bytes([estimate_bytes(manifest, one, settings) for one in ranks]), free


def _machine(comm: Any) -> tuple[list[int], int]:
    """The ranks of this rank's machine, and bytes that are free there. Collective: yes."""
    from mpi4py import MPI

    here = comm.Split_type(MPI.COMM_TYPE_SHARED)
    found = here.allgather((comm.rank, available_bytes()))
    here.Free()
    return [rank for rank, _ in found], min(free for _, free in found)


def _gb(count: int) -> str:
    return f"{count / 1e9:.3g} GB"
