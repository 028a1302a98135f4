"""What is passed on of another process's output, as it is written, and where it ends."""

import os
import select

import pytest

from distgnn.system.jobs.supervise import BANNER
from distgnn.system.output import Relay


@pytest.fixture
def pipes():
    """(where a process writes, where its reader reads)."""
    (source, writer), (reader, target) = os.pipe(), os.pipe()
    relay = Relay(source, target, BANNER)
    yield writer, reader
    os.close(writer)
    relay.join(60)
    os.close(target)
    assert shown(reader) == b""  # its end
    os.close(reader)


def shown(reader: int) -> bytes:
    assert select.select([reader], [], [], 10)[0], "nothing is shown"
    return os.read(reader, 1 << 10)


def test_what_is_written_is_shown_at_once(pipes):
    writer, reader = pipes
    for text in (b"ready\n", b"loss = ", b"=", b"=" * 80 + b"\n", b"\n"):
        os.write(writer, text)
        assert shown(reader) == text


def test_the_banner_of_hydra_and_what_follows_are_left_out(pipes):
    writer, reader = pipes
    os.write(writer, b"last line\n\n" + BANNER[:100])
    assert shown(reader) == b"last line\n\n"
    os.write(writer, BANNER[100:] + b" OF ONE OF YOUR APPLICATION PROCESSES\n")
