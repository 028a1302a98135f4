"""One part trained by itself: `python -m distgnn.replay.worker FOLDER RANK OUT`, with its settings on standard input.

    input     a line of JSON: settings, repeats, then a line "go" when others are ready, and its end when all are done
    output    a line "ready" after the first epochs, a line "done" when OUT is written; in place of "ready" a line
              "compiled", and nothing more: compiling takes memory that ranks which load kernels never take

Between "done" and the end of its input it goes on training, so that parts that are measured at the same time see each
other's use of the memory throughout.
"""

import json
import select
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from distgnn.config import ModelConfig, RunConfig, Schedule, Settings, TrainConfig
from distgnn.errors import DistGNNError

if TYPE_CHECKING:
    from distgnn.replay.recording import Recording

UNCOUNTED_EPOCHS = 2
SETTLED_EPOCHS, STILL = 20, 6  # at most so many epochs, and so many without growth, until memory counts as settled
# What a rank among others has besides: MPICH's buffers (16 MB through shared memory, 27 MB over TCP, measured on two
# ranks beside one that is alone) and the command line (4 MB).
BESIDES_BYTES = 24_000_000


READY, COMPILED, DONE = "ready", "compiled", "done"


def main(folder: str, rank: int, out: Path) -> None:
    """Measure one part."""
    import numpy as np

    from distgnn import kernels
    from distgnn.train.checkpoint.state import held_rows

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
        import torch

        from distgnn.graph.loader import load
        from distgnn.nn import model_for
        from distgnn.replay.recorder import Recorder
        from distgnn.replay.stand_in import StandIn
        from distgnn.train.trainer import Trainer

        comm: Any = StandIn(rank, num_ranks, answers)
        run, config, delay = settings.run, settings.train, settings.algorithm.delay
        options = settings.graph_options() | {"exchange": "flat"}
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
        """One epoch more."""
        self._recorder.begin()
        self.trainer.train_epoch(self._epoch)
        self._epoch += 1

    def measure(self, repeats: int) -> None:
        """Record so many cycles, and one before them."""
        self._log.on = True
        for _ in range(self._cycle * (repeats + 1)):
            self.go_on()
        self._log.on = False

    def settle(self) -> None:
        """Train until the peak of memory stands still: what is freed and taken anew leaves gaps, ever fewer."""
        from distgnn.system.sizes import peak_rss_bytes

        peaks = [peak_rss_bytes()]
        while self._epoch < SETTLED_EPOCHS and (len(peaks) <= STILL or peaks[-1] > 1.005 * peaks[-1 - STILL]):
            self.go_on()
            peaks.append(peak_rss_bytes())

    def recording(self) -> "Recording":
        """The typical epochs of a cycle, without the first: it waits for what was sent before the recording."""
        from distgnn.config import num_threads
        from distgnn.replay.recording import Recording, typical
        from distgnn.system.sizes import peak_rss_bytes

        recorder, cycle, graph = self._recorder, self._cycle, self.trainer.graph
        epochs = [typical(recorder.epochs[cycle + place :: cycle]) for place in range(cycle)]
        memory = peak_rss_bytes() + BESIDES_BYTES
        return Recording(graph.rank, graph.num_ranks, epochs, recorder.sent_to[-cycle:], memory, threads=num_threads())


if __name__ == "__main__":
    try:
        main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]))
    except DistGNNError as error:  # one line
        sys.exit(str(error))
