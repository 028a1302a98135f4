"""One part trained by itself, settings on standard input: `python -m distgnn.extras.replay.worker FOLDER RANK OUT`.

    input     a line of JSON: settings, repeats, then a line "go" when others are ready, and its end when all are done
    output    a line "ready" after the first epochs, a line "done" when OUT is written; in place of "ready" a line
              "compiled", and nothing more: compiling takes memory that ranks which load kernels never take

Between "done" and the end of its input it goes on training, so that parts that are measured at the same time see each
other's use of the memory throughout. The calls of a stand-in communicator and the timed blocks of a step become the
events of a recording.
"""

import json
import select
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch

from distgnn import kernels
from distgnn.config import ModelConfig, RunConfig, Schedule, Settings, TrainConfig, num_threads
from distgnn.errors import DistGNNError
from distgnn.extras.replay.measure import COMPILED, DONE, READY
from distgnn.extras.replay.recording import Event, Recording, typical
from distgnn.extras.replay.stand_in import Log, StandIn
from distgnn.graph.loader import load
from distgnn.nn import model_for
from distgnn.system.sizes import peak_rss_bytes
from distgnn.train.checkpoint.state import held_rows
from distgnn.train.run.trace import Trace
from distgnn.train.trainer import Trainer

NAMED = ("aggregate", "pack")
UNCOUNTED_EPOCHS = 2
SETTLED_EPOCHS, STILL = 20, 6  # most epochs, and epochs without growth, until memory counts as settled
# What a rank among others has besides: MPICH's buffers (16 MB through shared memory, 27 MB over TCP, measured on two
# ranks beside one that is alone) and the command line (4 MB).
BESIDES_BYTES = 24_000_000


def main(folder: str, rank: int, out: Path) -> None:
    asked = json.loads(sys.stdin.readline())
    found = asked["settings"]
    settings = Settings(
        TrainConfig(**found["train"]), ModelConfig(**found["model"]), RunConfig(**found["run"]),
        Schedule(**found["schedule"]),
    )  # fmt: skip
    answers = []
    if asked["answers"]:
        with np.load(asked["answers"]) as stored:
            answers = [stored[name] for name in stored.files]
    part = MeasuredPart(folder, rank, asked["num_ranks"], settings, answers)
    if asked["evaluate"]:
        part.trainer.predict()
    if kernels.compilation().compiled:
        print(COMPILED, flush=True)
        return
    print(READY, flush=True)
    sys.stdin.readline()
    part.measure(asked["repeats"])
    if asked["evaluate"]:
        part.settle()
        part.trainer.predict()
        held_rows(part.trainer)  # the memory of a checkpoint: late rows are copied
    out.write_text(json.dumps(part.recording().to_json()))
    print(DONE, flush=True)
    while not select.select([sys.stdin], [], [], 0)[0]:
        part.go_on()


class MeasuredPart:
    """A part among stand-ins that has trained until its epochs repeat; `answers`: what others tell it of their bins."""

    def __init__(self, folder: str, rank: int, num_ranks: int, settings: Settings, answers: list[Any]):
        comm: Any = StandIn(rank, num_ranks, answers)
        run, config, delay = settings.run, settings.train, settings.algorithm.delay
        options = settings.graph_options()
        graph = load(folder, run.algorithm, comm, say=None, plain_tensors=True, **options)
        torch.manual_seed(config.seed)
        model = model_for(settings.model, graph, config.task)
        self.trainer: Any = Trainer(model, graph, config, say=lambda text: None)
        self.trainer.trace = self._recorder = Recorder(graph.transport, comm.log)
        self._log, self._cycle, self._epoch = comm.log, delay or 1, 0
        # Until a schedule does the same in every cycle
        for _ in range(UNCOUNTED_EPOCHS + (settings.schedule.warmup_epochs + delay if delay else 0)):
            self.go_on()

    def go_on(self) -> None:
        self._recorder.begin()
        self.trainer.train_epoch(self._epoch)
        self._epoch += 1

    def measure(self, repeats: int) -> None:
        """Record cycles, and one before them."""
        self._log.on = True
        for _ in range(self._cycle * (repeats + 1)):
            self.go_on()
        self._log.on = False

    def settle(self) -> None:
        """Train until the peak of memory stands still: what is freed and taken anew leaves gaps, ever fewer."""
        peaks = [peak_rss_bytes()]
        while self._epoch < SETTLED_EPOCHS and (len(peaks) <= STILL or peaks[-1] > 1.005 * peaks[-1 - STILL]):
            self.go_on()
            peaks.append(peak_rss_bytes())

    def recording(self) -> Recording:
        """The typical epochs of a cycle, without the first: it waits for what was sent before the recording."""
        recorder, cycle, graph = self._recorder, self._cycle, self.trainer.graph
        epochs = [typical(recorder.epochs[cycle + place :: cycle]) for place in range(cycle)]
        memory = peak_rss_bytes() + BESIDES_BYTES
        return Recording(graph.rank, graph.num_ranks, epochs, recorder.sent_to[-cycle:], memory, threads=num_threads())


class Recorder(Trace):
    """Stands where the trainer keeps its trace: it hears of timed blocks, and of every step when it ends.

    Args: transport: of the graph; its exchanges are numbered from the start of a step; log: of the stand-in.
    """

    def __init__(self, transport: Any, log: Log):
        super().__init__(transport.counters, transport.rank)
        self._transport, self._log = transport, log
        self.epochs: list[list[Event]] = []
        self.sent_to: list[list[int]] = []
        self._starts: list[int] = []  # of each epoch: what had been started before
        self.begin()

    def begin(self) -> None:
        """The next step begins: forget what came before it."""
        self._log.calls.clear()
        self._blocks.clear()
        self._first_call, self._first_started = self._transport.num_calls, self._log.num_started

    def add_step(self, epoch: int, started: float, ended: float) -> None:
        """One training step is over: keep its events."""
        if self._log.on:
            self._starts.append(self._first_started)
            events: list[Event] = []
            blocks = sorted(block for block in self._blocks if block[0] in NAMED)
            blocks.sort(key=lambda block: block[1])
            free = started
            for kind, details, entered, left in self._log.calls:
                if entered < started or left > ended:
                    continue
                if kind in ("send", "receive"):
                    details = (details[0] - self._first_call, *details[1:])  # tag, rank, bytes
                elif kind == "wait":
                    details = ([self._age(number) for number in details],)
                events += [*_compute(blocks, free, entered), (kind, *details)]
                free = left
            self.epochs.append(events + _compute(blocks, free, ended))
            self.sent_to.append([int(count) for count in self._transport.sent_to])

    def _age(self, number: int) -> list[int]:
        """How many epochs ago a thing was started, and its place there; -1 where that was not recorded."""
        place = int(np.searchsorted(self._starts, number, side="right")) - 1
        if place < 0:
            return [-1, 0]
        return [len(self._starts) - 1 - place, number - self._starts[place]]


def _compute(blocks: list[tuple[str, float, float]], first: float, last: float) -> list[Event]:
    """What was computed between two times, by name."""
    events: list[Event] = []
    while blocks and blocks[0][2] <= first:
        blocks.pop(0)
    free = first
    for name, start, end in blocks:
        if start >= last:
            break
        if start > free:
            events.append(("compute", "dense", start - free))
        events.append(("compute", name, min(end, last) - max(start, free)))
        free = min(end, last)
    if last > free:
        events.append(("compute", "dense", last - free))
    return events


if __name__ == "__main__":
    try:
        main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]))
    except DistGNNError as error:  # one line
        sys.exit(str(error))
