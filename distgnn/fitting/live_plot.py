"""`dg.LivePlot`: curves of loss and metric while a run trains, in a notebook's cell or in a file that is replaced.

```
one rank, or a Trainer     on_train_epoch_end          the rank draws
dg.fit on several ranks    following(plots, run)       the caller draws what rank 0 writes into metrics.jsonl
```
"""

import io
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from distgnn.errors import InputError
from distgnn.system.atomic import check_name, replace_file
from distgnn.system.output import in_notebook, say
from distgnn.system.plots import Axis, Series, plot_lines, styled
from distgnn.train.run.callbacks import Callback
from distgnn.train.run.run_folder import read_metrics

KINDS = ("png", "svg", "pdf")
LOOK_SECONDS = 0.5
SHARE = 0.1  # of the time is for drawing, at most


class LivePlot(Callback):
    """Curves of a run while it trains: loss, and the metric of training and validation vertices.

    Args:
        file: a .png, .svg or .pdf file, replaced as the run goes on. None: in a notebook the curves stand below the
            cell; a script is told that nothing is drawn.
        seconds: between two drawings, at least.

    Raises: InputError for another kind of file, or where matplotlib is missing.

    Notes: drawn in the caller's process, or on rank 0 of a Trainer; `TrainConfig.eval_every` says how often there is a
        new metric.

    Example:
        >>> plot = dg.LivePlot("curves.svg")
        >>> result = dg.fit(data, "gcn", ranks=1, epochs=5, quiet=True, callbacks=[plot])
        >>> plot.file.read_text()[:5]
        '<?xml'
    """

    def __init__(self, file: str | Path | None = None, seconds: float = 1.0):
        if find_spec("matplotlib") is None:
            raise InputError("LivePlot needs the package matplotlib: pip install matplotlib")
        if file is not None and Path(file).suffix[1:].lower() not in KINDS:
            raise InputError(f"LivePlot cannot write {file}: expected a name that ends in .{', .'.join(KINDS)}")
        if file is not None:
            check_name(file)
            if not Path(file).absolute().parent.is_dir():
                raise InputError(f"LivePlot cannot write {file}: its folder does not exist")
        self.file: Path | None = None if file is None else Path(file)
        self.seconds: float = seconds
        self._next, self._shown = 0.0, 0
        self._handle: Any = None

    def on_train_start(self, trainer: Any, record: dict[str, Any]) -> None:
        if trainer.graph.rank == 0:
            self.start()

    def on_train_epoch_end(self, trainer: Any, record: dict[str, Any], last: bool = False) -> None:
        if trainer.graph.rank == 0:
            self.show(trainer.records, last)

    def on_train_end(self, trainer: Any, record: dict[str, Any]) -> None:
        self.on_train_epoch_end(trainer, record, last=True)

    def start(self) -> None:
        """A new run: its curves get a place of their own."""
        self._next, self._shown, self._handle = 0.0, 0, None
        if self.file is None and not in_notebook():
            say('LivePlot draws in notebooks; in a script, dg.LivePlot("curves.png") writes a file')

    def show(self, records: Sequence[dict[str, Any]], last: bool = False) -> None:
        """Draw the records of metrics.jsonl, unless that was done a moment ago; `last`: in any case."""
        notebook, began = in_notebook(), time.monotonic()
        if len(records) == self._shown or (self.file is None and not notebook) or (began < self._next and not last):
            return
        self._shown = len(records)
        figure = draw(records)
        if self.file is not None:
            replace_file(self.file, _as_bytes(figure, self.file.suffix[1:].lower()))
        if notebook:
            from IPython.display import Image, display

            picture = Image(data=_as_bytes(figure, "png"))
            if self._handle is None:
                self._handle = display(picture, display_id=True)
            else:
                self._handle.update(picture)
        ended = time.monotonic()
        self._next = ended + max(self.seconds, (ended - began) * (1 / SHARE - 1))


@contextmanager
def following(plots: Sequence[LivePlot], run: Path, resume: bool) -> Iterator[None]:
    """While the block runs, plots show what another process writes into a run folder.

    Args: resume: what is there already belongs to the run.
    """
    if not plots:
        yield
        return
    file, ended = run / "metrics.jsonl", threading.Event()
    drawing, seen = list(plots), () if resume else _identity(file)
    stale = seen[:1]  # of a run that is overwritten: it goes with its folder

    def look(last: bool = False) -> None:
        nonlocal seen
        found = _identity(file)
        if found[:1] in ((), stale) or (found == seen and not last):
            return
        seen, records = found, read_metrics(file)
        try:
            for plot in drawing:
                plot.show(records, last)
        except Exception as error:  # the run goes on
            drawing.clear()
            say(f"LivePlot draws no more: {type(error).__name__}: {error}")

    def follow() -> None:
        while not ended.wait(LOOK_SECONDS):
            look()

    for plot in plots:
        plot.start()
    watcher = threading.Thread(target=follow, name="LivePlot", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()
        look(last=True)


@styled()
def draw(records: Sequence[dict[str, Any]]) -> Any:
    """A matplotlib figure of records: the loss, and beside it the metric where there is one."""
    from matplotlib.figure import Figure

    kind = "accuracy" if any("valid_accuracy" in record for record in records) else "metric"
    metrics = [f"{split}_{kind}" for split in ("train", "valid")]
    panels = [["loss"], metrics] if any(name in record for record in records for name in metrics) else [["loss"]]
    figure = Figure(figsize=(4.5 * len(panels), 3.2), layout="constrained")
    for panel, names in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
        series = []
        for name in names:
            points = [(record["epoch"] + 1, record[name]) for record in records if record.get(name) is not None]
            series.append(Series(name.replace("_", " "), points))
        plot_lines(panel, series, Axis("epoch", whole=True), Axis(names[0].rpartition("_")[2]))
        panel.legend()
    return figure


def _as_bytes(figure: Any, kind: str) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format=kind, dpi=100)
    return buffer.getvalue()


def _identity(file: Path) -> tuple[int, ...]:
    """Which file this is, and its size; nothing where there is none."""
    try:
        found = file.stat()
    except OSError:
        return ()
    return found.st_ino, found.st_size
