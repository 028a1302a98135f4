"""Whole models under cd-r: delay 0 is cd-0, still weights become exact, and it learns."""

import weakref

import numpy as np
import pytest
from cut_graphs import dist_graph, gather_rows, random_graph
from trainers import trainer_of

from distgnn.comm import DelayedExchange, make_bins, sum_over_ranks
from distgnn.config import ModelConfig, TrainConfig
from distgnn.nn import build_model
from distgnn.train import Trainer


def set_delay_0(graph) -> None:
    """Replace the delayed exchanges by ones of delay 0 without warm-up."""
    bins = make_bins(graph.plan, 1, graph.comm)
    wires = [graph.exchanges.wire_of("float32", direction) for direction in (0, 1)]
    graph.exchanges.delayed = (
        DelayedExchange(graph.exchange, bins, 0, 0, wires[0]),
        DelayedExchange(graph.transposed_exchange, [one.transposed() for one in bins], 0, 0, wires[1]),
    )
    graph.forward_arcs.delayed = graph.exchanges.delayed[0]


def losses_and_weights(graph, epochs: int = 8):
    trainer = trainer_of(graph, ModelConfig("sage", 8, 3), epochs=epochs, eval_every=4)
    result = trainer.fit()
    return result, gather_rows(graph, trainer.predict())


@pytest.mark.mpi(3)
def test_delay_0_trains_as_cd_0(comm):
    exact, logits = losses_and_weights(dist_graph(random_graph(1), comm))
    graph = dist_graph(random_graph(1), comm, algorithm="cd-1")
    set_delay_0(graph)
    late, late_logits = losses_and_weights(graph)
    assert late.losses == exact.losses
    np.testing.assert_array_equal(late_logits, logits)


@pytest.mark.mpi(3)
@pytest.mark.parametrize("delay", [1, 2, 4])
def test_with_still_weights_a_chain_of_channels_becomes_exact(comm, delay):
    """3 layers, the first kept: 2 aggregations of 2 channels forward, and the same backward: K = 8."""
    epochs = 8 * (2 * delay - 1) + 1
    exact, late = dist_graph(random_graph(1), comm), dist_graph(random_graph(1), comm, algorithm=f"cd-{delay}")
    results = []
    for graph, passes in ((exact, 1), (late, epochs + 1)):
        model = trainer_of(graph, ModelConfig("sage", 8, 3)).model.eval()
        for step in range(passes):
            graph.step = step
            scale = 5.0 if step == 0 and passes > 1 else 1.0  # another state to start from
            model.zero_grad()
            logits = model(graph, graph.feats) * scale
            logits.square().sum().backward()
        graph.drain()
        results.append([logits.detach().numpy(), *(sum_over_ranks(comm, p.grad.numpy()) for p in model.parameters())])
    for one, other in zip(*results, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


@pytest.mark.mpi(2)
def test_nothing_is_in_flight_when_a_run_has_ended(comm):
    """Neither rows nor gradients: a request that was waited for is null."""
    graph = dist_graph(random_graph(1), comm, algorithm="cd-2")
    losses_and_weights(graph)
    channels = [channel for late in graph.exchanges.delayed for channel in late._channels.values()]
    requests = [
        one for channel in channels for several in (*channel.requests.values(), channel.sending) for one in several
    ]
    assert len(channels) > 2 and requests
    assert not any(requests)


@pytest.mark.mpi(2)
def test_no_memory_of_a_step_is_there_when_it_is_of_no_use(comm, shared_tmp_path):
    """Logits while gradients travel back; free rows in an evaluation, whose exact messages lie beside held rows; both
    in a checkpoint, where held rows are copied."""
    graph = dist_graph(random_graph(1, num_nodes=6000, num_edges=12_000), comm, algorithm="cd-2")
    model = build_model(ModelConfig(hidden_feats=128, num_layers=3), graph.num_feats, graph.num_classes)
    made, alive = [], []
    model.register_forward_hook(lambda _module, _inputs, logits: made.append(weakref.ref(logits)))
    for parameter in model.parameters():
        parameter.register_post_accumulate_grad_hook(lambda _: alive.append(made[-1]() is not None))
    trainer = Trainer(model, graph, TrainConfig(log=None, timeout=0))
    trainer.train_epoch(0)
    assert alive and not any(alive)
    before = graph.buffers.num_bytes
    trainer.evaluate()
    assert graph.buffers.num_bytes < before and graph.transport.messages.num_bytes > 0
    run = TrainConfig(epochs=1, eval_every=1, log=None, timeout=0, run_dir=str(shared_tmp_path / "run"))
    Trainer(model, graph, run).fit()  # a checkpoint is the last thing
    assert graph.buffers.num_bytes == graph.transport.messages.num_bytes == 0


@pytest.mark.mpi(3)
def test_it_differs_from_exact_and_sends_less(comm):
    exact, _ = losses_and_weights(dist_graph(random_graph(1), comm))
    late, _ = losses_and_weights(dist_graph(random_graph(1), comm, algorithm="cd-4"))
    assert late.losses[0] == pytest.approx(exact.losses[0], rel=1e-12)  # the warm-up epoch
    assert late.losses[1] != exact.losses[1]
    assert late.summary["sent_bytes_per_epoch"] < 0.3 * exact.summary["sent_bytes_per_epoch"]
    pairs = np.array(exact.summary["pair_bytes_per_epoch"])
    assert pairs.sum() == exact.summary["sent_bytes_per_epoch"] and not pairs.diagonal().any()


@pytest.mark.mpi(3)
def test_a_narrow_wire_trains_nearly_the_same_with_fewer_bytes(comm):
    options = {"dtype": "float32"}
    exact, _ = losses_and_weights(dist_graph(random_graph(1), comm, **options))
    for wire, tolerance in {"bfloat16": 0.01, "int8": 0.03}.items():  # relative, after 8 epochs
        repeats = range(2 if wire == "int8" else 1)  # rounding at random repeats, too
        runs = [losses_and_weights(dist_graph(random_graph(1), comm, **options, wire=wire))[0] for _ in repeats]
        assert runs[0].losses == runs[-1].losses != exact.losses
        np.testing.assert_allclose(runs[0].losses, exact.losses, rtol=tolerance)
        assert runs[0].summary["sent_bytes_per_epoch"] < 0.6 * exact.summary["sent_bytes_per_epoch"]
    mixed, _ = losses_and_weights(dist_graph(random_graph(1), comm, **options, wire="float32", wire_backward="int8"))
    assert mixed.losses[0] == exact.losses[0]
    assert mixed.losses[1:] != exact.losses[1:]
