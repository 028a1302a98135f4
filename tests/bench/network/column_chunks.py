"""Hiding more of cd-0's messages: columns in chunks as a pipeline, and local arcs shared out between the two messages.

    python tests/bench/network/column_chunks.py parts-2 --rate 1gbit --ways now,shared,2,4 --out chunks.json

One host per part (hosts.py), one thread each; GraphSAGE, all ways in turn in one run.

    now       the program: local arcs are aggregated while rows travel, half of the own products while sums do
    shared    the same, but local arcs are shared out between rows and sums in proportion: the same bits
    C         hidden rows in C chunks of columns, an exchange for each; all rows leave at once; while sums of
              chunk c travel, chunk c + 1 is aggregated and chunk c - 1 multiplied by its rows of the weight

Only aggregations of rows of --least columns and more are cut in chunks. It replaces functions of the program.
"""

import argparse
import json
import os
import statistics
import sys
from functools import partial
from pathlib import Path

import numpy as np

UNCOUNTED = 2


def main() -> None:
    """Start the ranks; on a rank: measure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts")
    parser.add_argument("--rate", default="1gbit")
    parser.add_argument("--ways", default="now,shared,2,4")
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--least", type=int, default=128)
    parser.add_argument("--num-layers", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=4, help="in one turn")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--out", type=Path, default=Path("column-chunks.json"))
    parser.add_argument("--on-rank", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.on_rank:
        measure(options)
        return
    from hosts import hosts

    count = json.loads((Path(options.parts) / "partition.json").read_text())["num_parts"]
    with hosts(count, options.rate) as run:
        run(os.path.abspath(__file__), *sys.argv[1:], "--on-rank")
    report = json.loads(options.out.read_text())
    print(f"\n{options.parts}, {count} hosts × 1 thread, {options.rate}\n")
    print("| way | epoch s | ± iqr | least | of now | wait s | aggregate s | MB sent | last loss |\n|" + 9 * "---|")
    for way, row in report.items():
        cells = [*(f"{value:.4f}" for value in row["epoch"]), f"{row['epoch'][0] / report['now']['epoch'][0]:.3f}"]
        cells += [f"{row[name]:.4f}" for name in ("wait_seconds", "aggregate_seconds")]
        print("| " + " | ".join([way, *cells, f"{row['sent_bytes'] / 1e6:.1f}", f"{row['loss']:.6f}"]) + " |")


def measure(options: argparse.Namespace) -> None:
    """Epochs of all ways in turn. Collective: yes."""
    import torch

    from distgnn.config import ModelConfig, TrainConfig
    from distgnn.graph.loader import load
    from distgnn.nn import model_for
    from distgnn.train import Trainer

    ways = options.ways.split(",")
    trainers, records = {}, {way: [] for way in ways}
    for way in ways:
        graph = load(options.parts, "cd-0", say=None)
        torch.manual_seed(0)
        model = model_for(ModelConfig("sage", options.width, options.num_layers), graph)
        trainers[way] = Trainer(model, graph, TrainConfig())
    for number in range(options.rounds + 1):
        for way, trainer in trainers.items():
            with Replaced(way, options.least):
                for _ in range(options.epochs if number else UNCOUNTED):
                    records[way].append(trainer.train_epoch(len(records[way])))
    rows = {}
    for way, trainer in trainers.items():
        trainer.graph.drain()
        timed = records[way][UNCOUNTED:]
        seconds = [one["seconds"] for one in timed]
        quarter, three_quarters = np.percentile(seconds, [25, 75])
        rows[way] = {"epoch": [statistics.median(seconds), three_quarters - quarter, min(seconds)]}
        rows[way] |= {"epochs": seconds, "loss": timed[-1]["loss"]}
        for name in ("wait_seconds", "aggregate_seconds", "sent_bytes"):
            rows[way][name] = statistics.median(one[name] for one in timed)
    if graph.rank == 0:
        options.out.write_text(json.dumps(rows, indent=1))
    for exchange in _exchanges.values():
        exchange.drain()


class Replaced:
    """Within, the program's functions are those of a way."""

    def __init__(self, way: str, least: int):
        self.way, self.least = way, least

    def __enter__(self) -> None:
        from distgnn.ops.aggregation import convolve
        from distgnn.ops.aggregation.aggregator import Aggregator

        self.kept = Aggregator.__call__, dict(convolve._FORWARD), dict(convolve._BACKWARD)
        if self.way == "shared":
            Aggregator.__call__ = shared
        elif self.way != "now":
            num_chunks, plan = int(self.way), convolve.Plan.AGGREGATE_ONLY
            convolve._FORWARD[plan] = partial(forward, convolve._FORWARD[plan], num_chunks, self.least)
            convolve._BACKWARD[plan] = partial(backward, convolve._BACKWARD[plan], num_chunks, self.least)

    def __exit__(self, *_) -> None:
        from distgnn.ops.aggregation import convolve
        from distgnn.ops.aggregation.aggregator import Aggregator

        Aggregator.__call__, forwards, backwards = self.kept
        convolve._FORWARD.update(forwards)
        convolve._BACKWARD.update(backwards)


def shared(self, rows, edge_weight=None, source_scale=None, target_scale=None, site=None, out=None, overlap_work=()):
    """`Aggregator.__call__` with local arcs for both messages; exact exchanges only."""
    from distgnn.ops.aggregation.aggregator import Factors, _do

    arcs, exchange, plan = self.arcs, self.exchange, self.exchange.plan
    factors = Factors(edge_weight, source_scale, target_scale)
    out = np.empty_like(rows) if out is None else out
    first, last = (
        max(len(plan.broadcast_rows), plan.num_source_halos),
        max(len(plan.reduce_rows), plan.num_target_halos),
    )
    pieces, half = arcs.pieces, len(overlap_work) // 2
    early = round(len(pieces) * first / max(first + last, 1))
    targets = exchange.target_rows(out)
    exchange.start_broadcast(rows)
    self._run(arcs.halo_owned, rows, targets, factors.of("owned", "targets"))
    for number, piece in enumerate(pieces):
        if number == early:
            sources = _to_reduce(self, exchange, targets, factors, overlap_work[:half])
        self._run(arcs.owned_owned, rows, out, factors.of("owned", "owned"), piece)
        exchange.progress()
    if early == len(pieces):
        sources = _to_reduce(self, exchange, targets, factors, overlap_work[:half])
    self._run(arcs.owned_halo, sources, out, factors.of("sources", "owned"), accumulate=True)
    _do(overlap_work[half:], exchange)
    exchange.finish_reduce(out)
    return out, sources


def _to_reduce(self, exchange, targets, factors, work):
    from distgnn.ops.aggregation.aggregator import _do

    _do(work, exchange)
    sources = exchange.finish_broadcast()
    self._run(self.arcs.halo_halo, sources, targets, factors.of("sources", "targets"), accumulate=True)
    exchange.start_reduce(targets)
    return sources


def forward(usual, num_chunks, least, call, x):
    """z = x Ws + sum over chunks c of (A x)[:, c] Wn[c]."""
    from distgnn.ops.aggregation import convolve
    from distgnn.ops.dense.products import add_product

    if x.own is None or x.feats.shape[1] < least:
        return usual(call, x)
    z, work = convolve._own_product_in_pieces(call.graph, x.feats, x.own)
    weights = x.neigh.chunk(num_chunks)

    def consume(number, aggregated):
        add_product(call.graph, aggregated, weights[number].contiguous(), z)

    pipeline(call, x.feats, num_chunks, work, consume, backward=False)
    return z, None


def backward(usual, num_chunks, least, call, saved, grads, needs_grad):
    """t = A' g by chunks: dWn[:, c] = x' t[:, c], dx = g Ws' + sum over c of t[:, c] Wn[:, c]'."""
    from distgnn.ops.aggregation import convolve
    from distgnn.ops.dense.products import add_product, weight_gradient
    from distgnn.ops.overlap import product_pieces

    graph, (neigh, own) = call.graph, saved.weights
    if own is None or not needs_grad or grads.shape[1] < least:
        return usual(call, saved, grads, needs_grad)
    found = convolve._WeightGradients(graph, saved, grads)
    grad_feats = graph.buffers.empty(len(grads), own.shape[0], grads.dtype)
    work = [*found.own_work, *product_pieces(graph, grads, own.T, grad_feats)]
    weights, gradients = neigh.chunk(num_chunks, dim=1), neigh.new_empty(neigh.shape)
    parts = gradients.chunk(num_chunks, dim=1)

    def consume(number, turned):
        parts[number].copy_(weight_gradient(graph, saved.feats, turned))
        add_product(graph, turned, weights[number].T.contiguous(), grad_feats)

    pipeline(call, grads, num_chunks, work, consume, backward=True)
    return grad_feats, gradients, found.own


_exchanges: dict = {}


def pipeline(call, rows, num_chunks, work, consume, backward: bool) -> None:
    """Aggregate `rows` chunk by chunk; consume(c, aggregated [O, D / C]) as soon as a chunk's sums are complete."""
    from distgnn.comm import Exchange
    from distgnn.ops.aggregation.aggregator import Factors, _do
    from distgnn.ops.aggregation.halo import as_array

    graph, spec = call.graph, call.spec
    arcs = graph.backward_arcs(weighted=False) if backward else graph.forward_arcs
    scales = spec.scales
    if backward:
        of_sources, of_targets = (None if scale is None else scale.transposed() for scale in scales)
        scales = of_targets, of_sources
    factors, blocks = Factors(None, *scales), arcs.arcs
    chunks = [(chunk, graph.buffers.empty_like(chunk)) for chunk in map(_whole, rows.chunk(num_chunks, dim=1))]
    exchanges, targets = [], []
    for number, (chunk, out) in enumerate(chunks):
        key = (id(arcs.exchange), number)
        if key not in _exchanges:
            _exchanges[key] = Exchange(arcs.exchange.plan, arcs.exchange.transport)
        exchanges.append(_exchanges[key])
        targets.append(exchanges[-1].target_rows(as_array(out)))
        exchanges[-1].start_broadcast(as_array(chunk))
    half = len(work) // 2
    for number, (chunk, out) in enumerate(chunks):
        exchange, mine, sums = exchanges[number], as_array(chunk), as_array(out)
        arcs._run(blocks.halo_owned, mine, targets[number], factors.of("owned", "targets"))
        for piece in blocks.pieces:
            arcs._run(blocks.owned_owned, mine, sums, factors.of("owned", "owned"), piece)
            exchange.progress()
        if not number:
            _do(work[:half], exchange)
        sources = exchange.finish_broadcast()
        arcs._run(blocks.halo_halo, sources, targets[number], factors.of("sources", "targets"), accumulate=True)
        exchange.start_reduce(targets[number])
        arcs._run(blocks.owned_halo, sources, sums, factors.of("sources", "owned"), accumulate=True)
        if not number:
            _do(work[half:], exchange)  # before what is added to it
        else:
            exchanges[number - 1].finish_reduce(as_array(chunks[number - 1][1]))
            consume(number - 1, chunks[number - 1][1])
            exchange.progress()
    exchanges[-1].finish_reduce(as_array(chunks[-1][1]))
    consume(num_chunks - 1, chunks[-1][1])


def _whole(chunk):
    return chunk.contiguous()


if __name__ == "__main__":
    main()
