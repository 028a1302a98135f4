"""The training loop: one synchronous step per epoch over the whole graph, the same on every rank.

logits = model(graph, feats)     aggregation exchanges inside
rank_loss(...).backward()        the same exchanges, transposed
gradients summed over ranks, one optimiser step with equal weights everywhere
"""

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import nullcontext
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from distgnn.comm import check_same, raise_together
from distgnn.config import TrainConfig
from distgnn.config.task import LOWER_IS_BETTER
from distgnn.errors import RunStopped, on_all_ranks
from distgnn.graph.face.row_graph import with_rows
from distgnn.graph.induced import training_subgraph
from distgnn.graph.memory.ledger import blocks_of
from distgnn.graph.task_rows import rows_of_task
from distgnn.ops.recompute import saved_in
from distgnn.ops.step_check import StepCheck
from distgnn.system.atomic import replace_file
from distgnn.system.jobs.rank_log import RankLog
from distgnn.system.jobs.watchdog import Watchdog
from distgnn.system.output import say
from distgnn.train.checkpoint.identity import fingerprint, name_of, run_settings
from distgnn.train.checkpoint.state import flatten, in_whole, load_checkpoint, save_checkpoint
from distgnn.train.checkpoint.weights import pack
from distgnn.train.extra_pass import exact_step, explain, step_errors
from distgnn.train.gradients import GradientBuffer, lay_out
from distgnn.train.lr_schedule import EarlyStopping, rate_of
from distgnn.train.metrics import OwnLoss, OwnMetric, check_own, own_metrics, share_of_loss
from distgnn.train.optimizers import OwnOptimizer, TorchOptimizer, decays_beside, make_optimizer
from distgnn.train.passes import Passes
from distgnn.train.run.callbacks import Callbacks
from distgnn.train.run.interrupt import Interrupts
from distgnn.train.run.machine import where_this_rank_runs
from distgnn.train.run.outputs import Outputs, TrainResult, over_ranks, summarize
from distgnn.train.run.run_folder import best_weights
from distgnn.train.run.trace import Trace
from distgnn.train.tasks import Task, task_for
from distgnn.train.users_model import (
    check_trainable,
    drawing,
    face_of,
    run_model,
    seen_by_users,
    trail_of,
    warn_of_modules_per_rank,
)


class Trainer:
    """Trains a model on a DistGraph, with Adam or any optimiser of `torch.optim`.

    Collective: the constructor, `fit`.

    Args:
        model: any torch module that takes (graph, feats) and gives logits, a row of each vertex; for tasks on pairs of
            vertices a `dg.nn.PairPredictor`. Parameters of rank 0 are copied to all ranks. A user's model, `loss` and
            `metrics` get rows of all ranks, unless the graph was loaded with plain_tensors=True.
        graph: DistGraph with features, labels and training rows.
        config: how to train.
        optimizer: a torch.optim class (gets lr and weight decay of `config`), a function of the parameters that makes
            an optimiser, or one that is made; None: the program's own Adam, which starts faster.
        scheduler: makes a torch scheduler of `optimizer`; stepped per epoch, ReduceLROnPlateau with the epoch's loss.
        loss: of (graph, logits) to the loss of the whole graph. With plain tensors this rank's share (their sum is the
            loss), or a `graph.global_mean`.
        metrics: further metrics by name, of (graph, logits) to a number of the whole graph; higher is better for
            the one that `config.metric` names, which then picks the best epoch.
        callbacks: see `Callback`.
        on_epoch: called on rank 0 with the record of each epoch, in place of the console's report.
        describe: further sections for config.toml (model, data); a resumed run must have the same "model" and "run".
        say: called on rank 0 with news that are no error (default: a line on standard error).

    Notes:
        With a run folder, SIGTERM, SIGINT and SIGUSR1 end `fit` after the epoch, with a checkpoint. On several ranks a
        watchdog ends the job when nothing moves for `config.timeout` seconds.

    Raises:
        InputError: on every rank, where the graph or the settings do not allow training.

    Example:
        >>> model = dg.nn.GraphSAGE(graph.num_feats, 8, graph.num_classes, num_layers=2)
        >>> trainer = dg.Trainer(model, graph, dg.TrainConfig(epochs=20, lr=0.01, log=None))
        >>> result = trainer.fit()
        >>> result.losses[-1] < result.losses[0]
        True
        >>> trainer.predict().shape
        torch.Size([60, 4])
    """

    model: nn.Module
    graph: Any  # that is trained on: of inductive training a part of `whole`
    whole: Any
    rows: Any  # that the task is on, of `whole`
    config: TrainConfig
    own_metrics: dict[str, OwnMetric]
    own_loss: OwnLoss | None
    on_epoch: Callable[[dict[str, Any]], None] | None
    optimizer: OwnOptimizer | TorchOptimizer
    settings: dict[str, Any]
    interrupts: Interrupts
    stop_signal: int

    def __init__(
        self,
        model: nn.Module,
        graph: Any,
        config: TrainConfig | None = None,
        *,
        optimizer: Any = None,
        scheduler: Callable[[Any], Any] | None = None,
        loss: OwnLoss | None = None,
        metrics: Mapping[str, OwnMetric] | None = None,
        callbacks: Iterable[Any] = (),
        on_epoch: Callable[[dict[str, Any]], None] | None = None,
        describe: dict[str, Any] | None = None,
        say: Callable[[str], None] | None = None,
    ):
        self._gives_rows, graph = graph is not graph.plain, graph.plain
        self.model, self.whole, self.config = model.to(graph.weight_dtype), graph, config or TrainConfig()
        self.own_metrics, self.own_loss = dict(metrics or {}), loss
        with raise_together(graph.comm):
            check_own(self.config, self.own_metrics)
            self.callbacks: Callbacks = Callbacks(callbacks)
            self.rows = rows_of_task(graph, self.config.target)
            self.task: Task = task_for(self.config, model, self.rows)
            check_trainable(model, graph, self.config, loss)
        check_same(graph.comm, self.config.as_dict(), "start every rank with the same settings")
        warn_of_modules_per_rank(model, graph)
        own = self.config.metric in self.own_metrics
        self.metric: str = (None if own else self.config.metric) or self.task.metric
        self.best_by: str = str(self.config.metric) if own else "valid_metric"
        self.on_epoch, self._say = on_epoch, say
        if self.config.inductive:
            subgraph = training_subgraph(graph)
            graph = with_rows(subgraph).plain if face_of(graph) is not None else subgraph
        self.graph = graph
        graph.seed = self.config.seed
        with raise_together(graph.comm):
            self.passes: Passes = Passes.of(self.config, model, self.whole, graph)
        lay_out(model)
        self.modules: list[nn.Module] = list(model.modules())
        self.gradients: GradientBuffer = GradientBuffer(model, graph.comm, graph.transport.counters)
        self.trace: Trace | None = Trace(graph.transport.counters, graph.rank) if self.config.trace else None
        config = self.config
        with raise_together(graph.comm):
            self.optimizer = make_optimizer(config, self.gradients.parameters, optimizer, scheduler)
            self.decays = decays_beside(config, model)
            if config.run_dir is not None:  # say now what a checkpoint could not hold
                flatten(self.objects(), "state", {})
        self.optimizer.watch(model, graph, self.say)
        self.stopping: EarlyStopping = EarlyStopping(config.patience)
        self.optimizer.follow(rate_of(config, 0), None)
        self.settings = run_settings(config, config.metric or self.metric, describe or {}, graph) | self._others()
        self.best_state: dict[str, torch.Tensor] = {}
        self.best_record: dict[str, Any] | None = None
        self.last_record: dict[str, Any] | None = None
        self.records: list[dict[str, Any]] = []
        self.sent_to: list[np.ndarray] = []  # of each epoch of this process, bytes to each rank
        self.outputs: Outputs = Outputs(self, self.callbacks, describe or {})
        self.log: RankLog = RankLog(config.run_dir, graph.rank)
        self.interrupts, self.stop_signal = Interrupts(wanted=config.run_dir is not None), 0
        self.watchdog: Watchdog = Watchdog(graph.comm, self.log, config.timeout)

    def _others(self) -> dict[str, Any]:
        """Names of what is not the program's own: a resumed run must have the same."""
        found = self.optimizer.names | {"loss": name_of(self.own_loss), "callbacks": self.callbacks.names}
        return {f"train.{name}": value for name, value in found.items() if value}

    def objects(self) -> dict[str, Any]:
        """States of a torch optimiser, its scheduler and of callbacks, as a checkpoint keeps them."""
        return self.optimizer.objects() | self.callbacks.objects()

    def load_objects(self, state: dict[str, Any]) -> None:
        self.optimizer.load_objects(state)
        self.callbacks.load_objects(state)

    def say(self, text: str) -> None:
        """Tell the user (rank 0) and this rank's log something that is no error."""
        self.log.write(text)
        if self.graph.rank == 0:
            (self._say or partial(say, head=""))(text)

    def fit(self) -> TrainResult:
        """Train, from the newest checkpoint where `resume` is set. The model ends with the weights of the best
        validation epoch.

        Raises:
            RunError: on every rank, when the loss is not a number, or something cannot be written.
            RunStopped: on every rank, after a signal asked the run to stop; the run folder has a checkpoint.
            InputError: on every rank, when the checkpoint is of another model, graph or settings.
        """
        self.log.write(f"started: {where_this_rank_runs()}")
        try:
            memory = self.whole.ledger.watch(self._blocks) if self.config.memory_report else nullcontext()
            with self.watchdog.running(), self.interrupts, memory:
                result = self._fit()
        except BaseException as error:
            error.phase = self.watchdog.phase  # type: ignore[attr-defined]  # said with the traceback
            self.log.failure(error, self.watchdog.phase)
            self.outputs.close()
            raise
        self.log.write("finished")
        return result

    def _blocks(self) -> Iterator[tuple[str, Any]]:
        """What it holds, by name, where it is asked whose memory the peak is."""
        model, graph, optimizer = self.model, self.graph, self.optimizer
        grads = [parameter.grad for parameter in model.parameters()]
        state = optimizer.optimizer.state if isinstance(optimizer, TorchOptimizer) else optimizer
        yield "parameters and optimiser", (list(model.parameters()), list(model.buffers()), grads, state)
        yield "best weights", self.best_state
        yield from blocks_of(graph) if graph is not self.whole else ()
        yield "held rows", self.passes

    def _fit(self) -> TrainResult:
        result, config = TrainResult(), self.config
        self.watchdog.phase = "reading the checkpoint"
        self.records = result.records
        done = self._resume(result)
        saved = done
        self.outputs.start(self.last_record or {})
        while done < config.epochs and not self.stopping.should_stop():
            epoch, done = done, done + 1
            record = self.train_epoch(epoch)
            if done == config.epochs or done % config.eval_every == 0:
                self.watchdog.phase = f"epoch {epoch}, evaluation"
                started = time.perf_counter()
                record |= self.evaluate()
                record["evaluation_seconds"] = max(self.graph.comm.allgather(time.perf_counter() - started))
                self._keep_if_best(epoch, record)
                self.callbacks.call("on_validation_end", self, record)
            result.records.append(record)
            self.last_record = record
            self.watchdog.phase = f"epoch {epoch}, loggers and callbacks"
            self.outputs.add_epoch(record)
            if self.stop_signal or (config.checkpoint_every and done % config.checkpoint_every == 0):
                saved = self.save(done)
            if self.stop_signal:
                raise on_all_ranks(RunStopped(self.stop_signal, done, self.config.run_dir))
        if self.stopping.should_stop() and done < config.epochs:
            self.say(f"stopped after epoch {done} of {config.epochs}, {self.stopping.reason}")
        if saved < done:
            self.save(done)
        self.graph.drain()
        self.watchdog.phase = "finishing"
        if self.best_record is None:  # resumed with fewer epochs than were done, none of them evaluated
            self._keep_if_best(done - 1, result.records[-1] | self.evaluate())
        self.model.load_state_dict(self.best_state)
        result.summary = summarize(self, result.records)
        self.outputs.finish(result.summary)
        return result

    def _resume(self, result: TrainResult) -> int:
        """Take up the newest checkpoint where that is wanted; returns the epochs that are done."""
        if not self.config.resume or self.config.run_dir is None:
            return 0
        done = load_checkpoint(Path(self.config.run_dir), self)
        if done:
            self.optimizer.follow(rate_of(self.config, done), None)
        self.outputs.write(lambda folder: result.records.extend(folder.keep_epochs(done)))
        if self.best_state:
            self._write_best()
        result.records[:] = self.graph.comm.bcast(result.records, root=0)
        folder = self.outputs.folder  # of rank 0
        if not done and folder is not None and folder.removed_epochs:
            self.say(f"no checkpoint: starting anew, {folder.removed_epochs} epochs are taken out of metrics.jsonl")
        if len(result.records) < done:
            self.say(f"metrics.jsonl has {len(result.records)} of the {done} epochs before the checkpoint")
        if done and not result.records and self.last_record is not None:  # metrics.jsonl is gone; the weights are not
            result.records.append(self.last_record)
        if done:
            self.say(f"resuming after {done} epochs")
        return done

    def save(self, epochs_done: int) -> int:
        """Write a checkpoint where there is a run folder. Collective: yes."""
        if self.config.run_dir is not None:
            self.watchdog.phase = f"after {epochs_done} epochs, writing a checkpoint"
            save_checkpoint(Path(self.config.run_dir), self, epochs_done)
        return epochs_done

    @cached_property
    def fingerprint(self) -> dict[str, Any]:
        """What identifies the graph, for any cut of it; made once. Collective: the first time."""
        return fingerprint(self.whole)

    def evaluate(self) -> dict[str, float | None]:
        """Exact metrics of the model as it is now. Collective: yes."""
        logits = self._logits()
        with torch.no_grad():
            found = self.task.evaluate(self.rows, logits, self.metric)
        return found | own_metrics(self.rows, logits, self.own_metrics) if self.own_metrics else found

    def predict(self) -> torch.Tensor:
        """Logits of all vertices with the model as it is now, in evaluation mode: rows, or of a graph with plain
        tensors this rank's rows [O, C]. Collective: yes."""
        logits = self._logits()
        return seen_by_users(self.rows, logits)[1] if self._gives_rows else logits

    def _logits(self) -> torch.Tensor:
        if not self.whole.algorithm.exact:  # exact messages are made anew, beside rows held for training
            self.whole.buffers.give_back()
        self.model.eval()
        self.whole.buffers.asker = "evaluation"
        with torch.no_grad():
            return run_model(self.model, self.passes.tell(self.model, self.whole))

    def train_epoch(self, epoch: int) -> dict[str, Any]:
        """One pass over the whole graph; returns its record. Collective: yes.

        Notes: `stop_signal` is then a signal that some rank had received, or 0.

        Raises:
            RunError: on every rank, when loss or gradient are not finite; weights stay as they were before.
        """
        graph, watch = self.passes.tell(self.model, self.graph), self.watchdog
        every, exact = self.config.verify_every, None
        if every and (epoch + 1) % every == 0:  # the step of this epoch with exact exchanges, to be compared
            watch.phase = f"epoch {epoch}, the exact step to compare with"
            exact = exact_step(self.model, graph, self.gradients, epoch, self._loss)
        before, started = graph.transport.counters.copy(), time.perf_counter()
        graph.transport.start_step()
        self.model.train()
        taken = self.passes.take(self, epoch, exact is not None)
        ended = time.perf_counter()
        if self.trace:
            self.trace.add_step(epoch, started, ended)
        spent = graph.transport.counters.since(before) | {"waits": graph.transport.waits}
        self.sent_to.append(graph.transport.sent_to)
        watch.phase = f"epoch {epoch}, gathering numbers"
        mine = {"loss": taken.share, "seconds": ended - started}
        record, self.stop_signal = over_ranks(graph.comm, epoch, mine | {"signal": self.interrupts.received} | spent)
        record |= {"grad_norm": taken.norm} if self.config.clip_grad else {}
        self.optimizer.follow(rate_of(self.config, epoch + 1), record["loss"])
        if exact and taken.logits is not None:
            record |= step_errors(exact, taken.logits, self.gradients, graph)
        return record

    def step(self, graph: Any, name: str, keeps_logits: bool) -> tuple[torch.Tensor | None, float, float]:
        """One optimiser step: the logits if they are kept, this rank's share of the loss, the norm of the gradient.

        Collective: yes. Args: name: of the step in messages and in the watchdog's.
        """
        watch = self.watchdog
        self.gradients.zero()
        self.optimizer.begin()
        watch.phase, graph.buffers.asker = f"{name}, forward", "activations"
        with drawing(self.model, graph):
            with saved_in(graph.buffers):
                logits: torch.Tensor | None = run_model(self.model, graph)
                loss, share, whole = self._loss(graph, logits)
            if not keeps_logits:
                logits = None  # their memory is free when the loss has made its gradient
            self.whole.ledger.look()
            if graph.num_ranks > 1:  # what is alike on all ranks, and might be changed by a user's code
                optimizers = [self.optimizer.optimizer] if isinstance(self.optimizer, TorchOptimizer) else []
                trail = trail_of(self.model, graph)
                self.gradients.compare(StepCheck(self.gradients.shared, whole, optimizers, self.modules, trail))
            watch.phase, graph.buffers.asker = f"{name}, backward", "working rows"
            loss.backward()
        watch.phase = f"{name}, sum of gradients"
        self.gradients.sum()
        if not self.gradients.finite():
            raise explain(self.model, graph, name, math.fsum(graph.comm.allgather(share)))
        norm = self.gradients.clip(self.config.clip_grad) if self.config.clip_grad else 0.0
        watch.phase = f"{name}, optimiser"
        for parameter, decay in self.decays:
            parameter.grad.add_(parameter.detach(), alpha=decay)  # type: ignore[union-attr]
        self.optimizer.step()
        return logits, share, norm

    def _loss(self, graph: Any, logits: Any) -> tuple[torch.Tensor, float, torch.Tensor | None]:
        """As `share_of_loss`. Collective: as the loss is."""
        own, users = self.own_loss or self.task.loss, self.own_loss is not None
        return share_of_loss(self.model, rows_of_task(graph), logits, own, users, self.config.label_smoothing)

    def _keep_if_best(self, epoch: int, record: dict[str, Any]) -> None:
        """Keep weights that are the best so far."""
        value = record[self.best_by]
        lower = self.best_by == "valid_metric" and self.metric in LOWER_IS_BETTER
        if self.stopping.is_best(epoch, -value if lower and value is not None else value):
            self.best_state = {name: tensor.detach().clone() for name, tensor in self.model.state_dict().items()}
            self.best_record = record
            self._write_best()

    def _write_best(self) -> None:
        if self.config.run_dir is not None:
            best = in_whole(self.best_state)
            self.outputs.write(lambda folder: replace_file(best_weights(folder.path), pack(best)))
