"""Parts written several at a time: each once, in their places, and none after an error."""

import threading
import time

import pytest

from distgnn.partition.folder.writer import num_writers, write_parts


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_each_part_is_written_once_and_comes_back_in_its_place(threads, set_num_threads):
    set_num_threads(threads)
    written, steps, busy = [], [], threading.Lock()

    def write(part_id):
        time.sleep(0.002 * (part_id % 3))  # later parts are done before earlier ones
        written.append(part_id)
        return {"part": part_id}

    def step(done):
        assert busy.acquire(blocking=False), "two reports at once"
        steps.append(done)
        time.sleep(0.001)
        busy.release()

    assert write_parts(11, write, step) == [{"part": part_id} for part_id in range(11)]
    assert sorted(written) == list(range(11)) and steps == list(range(1, 12))


def test_as_many_at_once_as_threads_and_never_more_than_asked_for(set_num_threads):
    set_num_threads(3)
    assert [num_writers(8), num_writers(2), num_writers(8, 1)] == [3, 2, 1]
    both = threading.Barrier(2, timeout=900)
    # Two writers meet at the barrier; one alone would wait there in vain.
    write_parts(2, lambda part_id: {"arrived": both.wait()}, lambda done: None)
    seen = set()
    write_parts(6, lambda part_id: seen.add(threading.get_ident()) or {}, lambda done: None, most=1)
    assert len(seen) == 1


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_no_part_is_begun_after_an_error(error, set_num_threads):
    set_num_threads(3)
    begun = []

    def write(part_id):
        begun.append(part_id)
        if part_id == 4:
            raise error
        time.sleep(0.05)
        return {}

    with pytest.raises(type(error)):
        write_parts(200, write, lambda done: None)
    assert len(begun) < 12
