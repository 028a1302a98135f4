"""The training loop: one synchronous step per epoch over the whole graph, the same on every rank.

logits = model(graph, feats)     aggregation exchanges inside
rank_loss(...).backward()        the same exchanges, transposed
gradients summed over ranks, one optimiser step with equal weights everywhere
"""

import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import nn

from distgnn.comm import check_same, raise_together
from distgnn.config import TrainConfig
from distgnn.errors import InputError, RunError, RunStopped, on_all_ranks
from distgnn.graph.induced import training_subgraph
from distgnn.system.output import plain
from distgnn.train.adam import Adam
from distgnn.train.checkpoint.fingerprint import fingerprint
from distgnn.train.checkpoint.identity import run_settings
from distgnn.train.checkpoint.state import load_checkpoint, save_checkpoint
from distgnn.train.checkpoint.weights import pack
from distgnn.train.gradients import GradientBuffer
from distgnn.train.loss import rank_loss, rows_of_loss
from distgnn.train.lr_schedule import EarlyStopping, LearningRate, Schedules
from distgnn.train.metrics import evaluate
from distgnn.train.nonfinite import explain
from distgnn.train.run.interrupt import Interrupts
from distgnn.train.run.machine import where_this_rank_runs
from distgnn.train.run.rank_log import RankLog
from distgnn.train.run.records import TrainResult, over_ranks, summarize
from distgnn.train.run.run_folder import RunFolder
from distgnn.train.run.trace import Trace, merge
from distgnn.train.run.watchdog import Watchdog
from distgnn.train.trainable import check_trainable, warn_of_modules_per_rank
from distgnn.train.verify import ExactStep


class Trainer:
    """Trains a model on a DistGraph with Adam.

    Collective: the constructor, `fit`.

    Args:
        model: any torch module that takes (graph, feats) and gives logits [O, C] for owned rows. Parameters of
            rank 0 are copied to all ranks.
        graph: DistGraph with features, labels and training rows.
        config: how to train.
        on_epoch: called on rank 0 with the record of each epoch (a progress bar).
        describe: further sections for config.toml (model, data); a resumed run must have the same "model" and "run".
        say: called on rank 0 with news that are no error (default: a line on standard error).

    Notes:
        With a run folder, SIGTERM, SIGINT and SIGUSR1 end `fit` after the epoch, with a checkpoint. On several ranks a
        watchdog ends the job when nothing moves for `config.timeout` seconds.

    Raises:
        InputError: on every rank, where the graph or the settings do not allow training.
    """

    def __init__(
        self,
        model: nn.Module,
        graph: Any,
        config: TrainConfig | None = None,
        *,
        on_epoch: Callable[[dict], None] | None = None,
        describe: dict | None = None,
        say: Callable[[str], None] | None = None,
    ):
        self.model, self.whole, self.config = model.to(graph.weight_dtype), graph, config or TrainConfig()
        with raise_together(graph.comm):
            self.config.check()
            check_trainable(graph, self.config)
        check_same(graph.comm, self.config.as_dict(), "start every rank with the same settings")
        warn_of_modules_per_rank(model, graph)
        self.metric = self.config.metric or ("rocauc" if graph.multilabel else "accuracy")
        self.on_epoch, self._say = on_epoch, say
        self.graph = graph = training_subgraph(graph) if self.config.inductive else graph
        graph.seed = self.config.seed
        self.gradients = GradientBuffer(model, graph.comm, graph.transport.counters)
        self.trace = Trace(graph.transport.counters, graph.rank) if self.config.trace else None
        config = self.config
        self.optimizer = Adam(self.gradients.parameters, config.lr, config.weight_decay)
        self.schedules = Schedules(LearningRate(config), EarlyStopping(config.patience))
        self.settings = run_settings(config, self.metric, describe or {}, graph)
        self.best_state: dict[str, torch.Tensor] = {}
        self.best_record: dict | None = None
        self.last_record: dict | None = None
        self.run_folder = self._open_run_folder(describe or {})
        self.log = RankLog(config.run_dir, graph.rank)
        self.interrupts, self.stop_signal = Interrupts(wanted=config.run_dir is not None), 0
        self.watchdog = Watchdog(graph.comm, self.log, config.timeout)

    def _open_run_folder(self, describe: dict) -> RunFolder | None:
        config = self.config
        if config.run_dir is None:
            if config.trace:
                raise on_all_ranks(InputError("a trace is written into the run folder: give run_dir"))
            return None
        settings = {"train": config.as_dict() | {"metric": self.metric}} | describe
        settings["train"].pop("resume", None)
        folder = None
        with raise_together(self.graph.comm):
            if self.graph.rank == 0:
                folder = RunFolder(config.run_dir, settings, config.overwrite, config.resume)
        return folder

    def say(self, text: str) -> None:
        """Tell the user (rank 0) and this rank's log something that is no error."""
        self.log.write(text)
        if self.graph.rank == 0:
            (self._say or (lambda line: print(plain(line), file=sys.stderr, flush=True)))(text)

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
            with self.watchdog.running(), self.interrupts:
                result = self._fit()
        except BaseException as error:
            error.phase = self.watchdog.phase  # type: ignore[attr-defined]  # said with the traceback
            self.log.failure(error, self.watchdog.phase)
            if self.run_folder:
                self.run_folder.close()
            raise
        self.log.write("finished")
        return result

    def _fit(self) -> TrainResult:
        result, config = TrainResult(), self.config
        self.watchdog.phase = "reading the checkpoint"
        done = self._resume(result)
        saved = done
        while done < config.epochs and not self.schedules.stopping.should_stop():
            epoch, done = done, done + 1
            record = self.train_epoch(epoch)
            if done == config.epochs or done % config.eval_every == 0:
                self.watchdog.phase = f"epoch {epoch}, evaluation"
                record |= self.evaluate()
                self._keep_if_best(epoch, record)
            result.records.append(record)
            self.last_record = record
            self._report(record)
            if self.stop_signal or (config.checkpoint_every and done % config.checkpoint_every == 0):
                saved = self._save(done)
            if self.stop_signal:
                raise on_all_ranks(RunStopped(self.stop_signal, done, self.config.run_dir))
        if saved < done:
            self._save(done)
        self.graph.drain()
        self.watchdog.phase = "finishing"
        if self.best_record is None:  # resumed with fewer epochs than were done, none of them evaluated
            self._keep_if_best(done - 1, result.records[-1] | self.evaluate())
        self.model.load_state_dict(self.best_state)
        result.summary = summarize(result.records, self.best_record or {}, self.metric, self.graph.comm, config.seed)
        self._finish(result.summary)
        return result

    def _resume(self, result: TrainResult) -> int:
        """Take up the newest checkpoint where that is wanted; returns the epochs that are done."""
        if not self.config.resume or self.config.run_dir is None:
            return 0
        done = load_checkpoint(Path(self.config.run_dir), self)
        self.optimizer.lr = self.schedules.learning_rate.value
        self._write(lambda folder: result.records.extend(folder.keep_epochs(done)))
        if self.best_state:
            self._write(lambda folder: folder.keep_best(pack(self.best_state)))
        result.records[:] = self.graph.comm.bcast(result.records, root=0)
        if done and not result.records and self.last_record is not None:  # metrics.jsonl is gone; the weights are not
            result.records.append(self.last_record)
        if done:
            self.say(f"resuming after {done} epochs")
        return done

    def _save(self, epochs_done: int) -> int:
        if self.config.run_dir is not None:
            self.watchdog.phase = f"epoch {epochs_done - 1}, writing a checkpoint"
            save_checkpoint(Path(self.config.run_dir), self, epochs_done)
        return epochs_done

    @cached_property
    def fingerprint(self) -> dict:
        """What identifies the graph, for any cut of it; made once. Collective: the first time."""
        return fingerprint(self.whole)

    def evaluate(self) -> dict[str, float | None]:
        """Exact metrics of the model as it is now. Collective: yes."""
        return evaluate(self.whole, self.predict(), self.metric)

    def predict(self) -> torch.Tensor:
        """Logits of owned rows, [O, C], with the model as it is now, in evaluation mode. Collective: yes."""
        self.model.eval()
        with torch.no_grad():
            return self.model(self._on(self.whole), self.whole.feats)

    def _on(self, graph: Any) -> Any:
        """The same graph, after telling it to the modules that `distgnn.nn.distribute` gave one."""
        if self.config.inductive:
            for module in self.model.modules():
                if getattr(module, "graph", None) in (self.whole, self.graph):
                    module.graph = graph
        return graph

    def train_epoch(self, epoch: int) -> dict:
        """One pass over the whole graph and one optimiser step; returns its record. Collective: yes.

        Notes: `stop_signal` is then a signal that some rank had received, or 0.

        Raises:
            RunError: on every rank, when loss or gradient are not finite; weights stay as they were before.
        """
        graph, watch = self._on(self.graph), self.watchdog
        exact = self._exact_step(epoch)
        before, started = graph.transport.counters.copy(), time.perf_counter()
        graph.step = epoch
        graph.transport.start_step()
        self.model.train()
        self.gradients.zero()
        watch.phase = f"epoch {epoch}, forward"
        logits = self.model(graph, graph.feats)
        loss = rank_loss(graph, logits, rows_of_loss(self.model, graph))
        watch.phase = f"epoch {epoch}, backward"
        loss.backward()
        watch.phase = f"epoch {epoch}, sum of gradients"
        self.gradients.sum()
        if not self.gradients.finite():
            raise explain(self.model, graph, epoch, math.fsum(graph.comm.allgather(loss.item())))
        watch.phase = f"epoch {epoch}, optimiser"
        self.optimizer.step()
        ended = time.perf_counter()
        if self.trace:
            self.trace.add_step(epoch, started, ended)
        spent = graph.transport.counters.since(before) | {"waits": graph.transport.waits}
        watch.phase = f"epoch {epoch}, gathering numbers"
        mine = {"loss": loss.item(), "seconds": ended - started, "signal": self.interrupts.received} | spent
        record, self.stop_signal = over_ranks(graph.comm, epoch, mine)
        self.optimizer.lr = self.schedules.learning_rate.after(epoch, record["loss"])
        if exact:
            record |= exact.errors_of(logits, self.gradients, graph)
        return record

    def _exact_step(self, epoch: int) -> ExactStep | None:
        """The step of this epoch with exact exchanges, where it is to be compared."""
        every = self.config.verify_every
        if not every or (epoch + 1) % every:
            return None
        self.watchdog.phase = f"epoch {epoch}, the exact step to compare with"
        return ExactStep.of(self.model, self.graph, self.gradients, epoch)

    def _keep_if_best(self, epoch: int, record: dict) -> None:
        """Keep weights that are the best so far."""
        if self.schedules.stopping.is_best(epoch, record["valid_metric"]):
            self.best_state = {name: tensor.detach().clone() for name, tensor in self.model.state_dict().items()}
            self.best_record = record
            self._write(lambda folder: folder.keep_best(pack(self.best_state)))

    def _report(self, record: dict) -> None:
        self._write(lambda folder: folder.add_epoch(record))
        if self.on_epoch and self.graph.rank == 0:
            self.on_epoch(record)

    def _finish(self, summary: dict) -> None:
        with raise_together(self.graph.comm):
            if self.trace and self.config.run_dir is not None:
                with _writing(self.config.run_dir):
                    self.trace.write(Path(self.config.run_dir) / "trace")
        if self.trace and self.run_folder:
            merge(self.run_folder.path / "trace")
        self._write(lambda folder: folder.finish(summary))

    def _write(self, work: Callable[[RunFolder], object]) -> None:
        """Write into the run folder, on rank 0; what cannot be written is an error of all ranks. Collective: yes."""
        with raise_together(self.graph.comm):
            if self.run_folder is not None:
                with _writing(self.run_folder.path):
                    work(self.run_folder)


@contextmanager
def _writing(path: str | Path) -> Iterator[None]:
    """A full or read-only disk is one line."""
    try:
        yield
    except OSError as error:
        raise RunError(f"cannot write to the run folder {path}: {error.strerror or error}") from error
