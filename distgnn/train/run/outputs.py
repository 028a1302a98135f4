"""Where a run's numbers go: the run folder, loggers on rank 0, and callbacks on every rank."""

from collections.abc import Callable
from typing import Any

from distgnn.comm import raise_together
from distgnn.errors import InputError, RunError, on_all_ranks
from distgnn.system.atomic import replace_file
from distgnn.system.output import say
from distgnn.train.checkpoint.weights import feat_norm_file, pack_feat_norm
from distgnn.train.run.callbacks import Callbacks
from distgnn.train.run.loggers import make_loggers
from distgnn.train.run.run_folder import RunFolder, writing


class Outputs:
    """The outputs of a trainer. What cannot be written is an error of all ranks.

    Collective: all methods and the constructor. Args: settings: sections of config.toml beside [train].
    """

    def __init__(self, trainer: Any, callbacks: Callbacks, settings: dict[str, Any]):
        self._trainer, self._comm, config = trainer, trainer.graph.comm, trainer.config
        self._callbacks, self._loggers = callbacks, Callbacks()
        self.folder: RunFolder | None = None
        if config.run_dir is None:
            files = [name for name in config.loggers if name != "console"] + ["a trace"] * config.trace
            if files:
                raise on_all_ranks(InputError(f"{files[0]} is written into the run folder: give run_dir"))
            return
        train = config.as_dict() | {"metric": config.metric or trainer.metric}
        train.pop("resume", None)
        with raise_together(self._comm):
            if trainer.graph.rank == 0:
                sections = {"train": {}} | settings | {"train": train}  # it comes first
                self.folder = RunFolder(config.run_dir, sections, config.overwrite, config.resume)

    def write(self, work: Callable[[RunFolder], object]) -> None:
        with raise_together(self._comm):
            if self.folder is not None:
                with writing(self.folder.path):
                    work(self.folder)

    def start(self, record: dict[str, Any]) -> None:
        """Before the first epoch; `record` is the last one of a resumed run."""
        norm = self._trainer.graph.feat_norm
        if norm is not None:
            self.write(lambda folder: replace_file(feat_norm_file(folder.path), pack_feat_norm(norm)))
        self._loggers = make_loggers(self._trainer)
        self._log("on_train_start", record)
        self._callbacks.call("on_train_start", self._trainer, record)

    def add_epoch(self, record: dict[str, Any]) -> None:
        with raise_together(self._comm), writing(self._trainer.config.run_dir):
            if self.folder is not None:
                self.folder.add_epoch(record)
            self._loggers.call("on_train_epoch_end", self._trainer, record)
        if self._trainer.on_epoch and self._trainer.graph.rank == 0:
            self._trainer.on_epoch(record)
        self._callbacks.call("on_train_epoch_end", self._trainer, record)

    def finish(self, summary: dict[str, Any]) -> None:
        """Write what comes last: the summary, then the trace, without which a run is whole."""
        self._log("on_train_end", summary)
        self._loggers.close()
        self.write(lambda folder: folder.finish(summary))
        if self._trainer.trace and self._trainer.config.run_dir is not None:
            events = self._trainer.trace.gather(self._comm)
            if self.folder is not None:
                try:
                    with writing(self.folder.path):
                        (self.folder.path / "trace").mkdir(exist_ok=True)
                        replace_file(self.folder.path / "trace" / "trace.json", events)
                except RunError as error:
                    say(f"{error}: the run is whole but for its trace")
        self._callbacks.call("on_train_end", self._trainer, summary)

    def close(self) -> None:
        """After an error: nothing more will be written. Not collective."""
        self._loggers.close()
        if self.folder:
            self.folder.close()

    def _log(self, event: str, record: dict[str, Any]) -> None:
        with raise_together(self._comm), writing(self._trainer.config.run_dir):
            self._loggers.call(event, self._trainer, record)
