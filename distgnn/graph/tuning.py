"""How kernels and products run on this machine: measured once, kept beside the compiled kernels.

    tuning-0123456789abcdef.json   {"machine": "…", "program": "…", "seconds": 1.4, "choices": {…}, "times": {…}}

The first process that has the lock measures, the others of the machine wait and read. Choices that change the rounding
are the job's: those of rank 0's machine, which stand in the run folder. DISTGNN_TUNING=FILE reads choices from a file
like this one, or of choices alone; DISTGNN_TUNING=off takes the defaults.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch

from distgnn.comm import raise_together
from distgnn.errors import InputError
from distgnn.kernels import Tuning, compilation
from distgnn.kernels.graph.tuner import Question, kernel_questions, measured, tune
from distgnn.kernels.runtime.jit import cache_folder, program_stamp
from distgnn.kernels.runtime.tiles import registers
from distgnn.kernels.runtime.tuning import OF_JOB, held_tuning, hold_tuning
from distgnn.ops.rowwise.products import sum_of_products, weight_gradient
from distgnn.system.atomic import flock, read_text, replace_file
from distgnn.system.output import say
from distgnn.system.processor import processor

VARIABLE = "DISTGNN_TUNING"
FEWEST_ARCS = 1 << 18  # of a part: in the caches little is to be gained
MOST_SECONDS = 1.2  # of measuring, without compiling, before the last question
PRODUCT_ROWS, PRODUCT_WIDTH = 1 << 11, 256


def job_tuning(comm: Any, num_arcs: int, job: Mapping[str, int] | None = None, narrow: bool = False) -> Tuning:
    """How this rank's kernels run from now on, and its graph's products: measured if a rank has many arcs. Collective.

    Args: num_arcs: of this rank; job: choices of an earlier job, on rank 0, which this one repeats; narrow: as below.
    """
    found = Tuning()
    wanted = max(comm.allgather(num_arcs)) >= FEWEST_ARCS or bool(os.environ.get(VARIABLE))
    with raise_together(comm):
        if wanted:
            found = machine_tuning(narrow)
            hold_tuning(found)
        mine = found if job is None else found.for_job(_checked(job))
    return found.for_job(comm.bcast(mine, root=0))


def machine_tuning(narrow: bool = False) -> Tuning:
    """This machine's choices: as DISTGNN_TUNING says, or kept, or measured now. Raises: InputError for such a file.

    Args: narrow: of bfloat16 rows, too, which need kernels of their own.
    """
    wanted = os.environ.get(VARIABLE)
    if wanted == "off":
        return Tuning()
    if wanted:
        try:
            return _checked(_read(Path(wanted)))
        except (OSError, ValueError, KeyError, RecursionError) as error:
            raise InputError(f"{VARIABLE}={wanted} is neither off nor a file of choices: {error}") from error
    file = kept_file()
    content, _ = kept(file)
    if _open_questions(content, narrow):
        with _alone(file):
            content, damage = kept(file)
            if asked := _open_questions(content, narrow):
                content = _measure(file, asked, content, damage)
    return _checked(content["choices"])


def _open_questions(content: dict[str, Any], narrow: bool) -> list[Question]:
    """What is not measured yet; what matters most comes first."""
    ours = kernel_questions()
    every = [*ours[:3], *product_questions()[: 1 + narrow], *ours[3:]]
    return [question for question in every if question.field not in content.get("times", ())]


def kept_file() -> Path | None:
    """Where choices are kept, beside compiled kernels; None: nowhere, each process measures."""
    folder = cache_folder()
    return folder and folder / f"tuning-{hashlib.sha256(machine().encode()).hexdigest()[:16]}.json"


def machine() -> str:
    """What a choice depends on: processor, cores, vector registers."""
    capability = torch.backends.cpu.get_cpu_capability()
    return f"{processor()}, {os.cpu_count()} cores, registers of {registers()[0]} bytes, torch {capability}"


def program() -> str:
    """The other half of it: whoever installs another program measures again."""
    return f"{program_stamp()[:16]}, torch {torch.__version__}"


def kept(file: Path | None) -> tuple[dict[str, Any], str]:
    """What was measured on this machine with this program, or nothing; where a file is damaged, which and why."""
    try:
        found = {} if file is None else _read(file)
        if not found or (found["machine"], found["program"]) != (machine(), program()):
            return {}, ""
        _checked(found["choices"])
        return found | {"times": dict(found["times"])}, ""
    except FileNotFoundError:
        return {}, ""
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        return {}, f"{file} is damaged ({error or type(error).__name__}): "


def _read(file: Path) -> dict[str, Any]:
    found = json.loads(read_text(file))
    if not isinstance(found, dict):
        raise ValueError("it holds no choices")
    return found


def _checked(choices: Any) -> Tuning:
    """Raises: ValueError for what is no choice."""
    choices = choices.get("choices", choices) if isinstance(choices, Mapping) else None
    if not isinstance(choices, Mapping) or not choices.keys() <= set(Tuning._fields):
        raise InputError(f"choices are {', '.join(Tuning._fields)}")
    wrong = [name for name, value in choices.items() if type(value) is not int or not 0 <= value < 1 << 63]
    if wrong or choices.get("product_rows") == 0 or choices.get("vectors") == 0:
        raise InputError(f"{', '.join(wrong) or 'vectors and product_rows'} must be whole numbers")
    return Tuning(**choices)


@contextlib.contextmanager
def _alone(file: Path | None) -> Iterator[None]:
    """No other process of the machine measures meanwhile."""
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):  # a folder that cannot be written: each process measures
            if file is not None:
                file.parent.mkdir(parents=True, exist_ok=True)
                handle = os.open(file.with_suffix(".lock"), os.O_CREAT | os.O_RDWR, 0o666)
                stack.callback(os.close, handle)
                flock(handle, fcntl.LOCK_EX)
        yield


def _measure(file: Path | None, asked: list[Question], content: dict[str, Any], damage: str) -> dict[str, Any]:
    """Ask what is open, and keep the answers beside earlier ones."""
    start, before = time.perf_counter(), compilation().seconds
    table: dict[str, dict[str, float]] = content.get("times", {})

    def spent() -> float:
        return time.perf_counter() - start - (compilation().seconds - before)

    def times(question: Question, held: Tuning) -> dict[int, float]:
        if spent() > MOST_SECONDS:  # a busy machine: the rest keeps its defaults, and is asked the next time
            table.pop(question.field, None)  # what was to be measured twice, too
            return {getattr(held, question.field): 0.0}
        found = measured(question, held)
        table.setdefault(question.field, {}).update({str(value): round(one, 7) for value, one in found.items()})
        return found

    found = tune(asked, times, _checked(content.get("choices", {})))
    seconds = spent()
    content = {"machine": machine(), "program": program(), "seconds": round(seconds + content.get("seconds", 0), 2)}
    content |= {"choices": found._asdict(), "times": table}
    place = "cannot be kept: each process measures"
    with contextlib.suppress(OSError):
        if file is not None:
            replace_file(file, (json.dumps(content, indent=1) + "\n").encode(), sync=False)
            place = f"kept in {file}"
    say(f"{damage}measured in {seconds:.1f} s how kernels run quickest on this machine, {place}")
    return content


def product_questions() -> list[Question]:
    """What is asked of products: ours or torch's of float32 rows, and whether bfloat16 rows are widened for them."""
    return [
        Question("own_products", (0, 1), lambda: _layer(torch.float32)),
        Question("wide_products", (0, 1), lambda: _layer(torch.bfloat16)),
    ]


def _layer(dtype: torch.dtype) -> Any:
    """A product and its weight's gradient, as a layer runs them."""
    rows, weight = torch.ones(PRODUCT_ROWS, PRODUCT_WIDTH, dtype=dtype), torch.ones(PRODUCT_WIDTH, PRODUCT_WIDTH)
    out = torch.empty_like(rows)

    def call() -> None:
        graph: Any = SimpleNamespace(tuning=held_tuning(), buffers=SimpleNamespace(empty=lambda *_: out))
        sum_of_products(graph, [(rows, weight)])
        weight_gradient(graph, rows, out)

    return call


def of_job(tuning: Tuning) -> dict[str, int]:
    """What a run folder keeps: the choices that change the rounding."""
    return {name: getattr(tuning, name) for name in OF_JOB}


def describe_tuning() -> str:
    """The choices of this machine and where they come from; nothing is measured. Raises: InputError as above."""
    file, wanted = kept_file(), os.environ.get(VARIABLE)
    if wanted:
        return f"{in_words(machine_tuning())} ({VARIABLE}={wanted})"
    found, _ = kept(file)
    where = str(file) if found else "defaults: `distgnn warmup` or the first large graph measures"
    return f"{in_words(_checked(found.get('choices', {})))} ({where})"


def in_words(tuning: Tuning) -> str:
    """One line for people."""
    kibibytes = "/".join(str(size >> 10) for name, size in tuning._asdict().items() if name.startswith("ahead_"))
    return (
        f"{kibibytes} KiB of rows under way, {tuning.vectors} vectors a pass, products of {tuning.product_rows} rows, "
        f"large results {'past' if tuning.past_caches < 1 << 40 else 'through'} the caches, "
        f"{'' if tuning.blocked else 'no '}blocks of sources, float32 products "
        f"{'our own' if tuning.own_products else 'of torch'}, bfloat16 rows "
        f"{'widened for products' if tuning.wide_products else 'multiplied by torch as they are'}"
    )
