"""Whatever a server answers, a download is the file or one line."""

import contextlib
import gc
import socket
import threading
import warnings

import pytest

from distgnn.datasets import downloads as module
from distgnn.datasets.downloads import fetch
from distgnn.errors import InputError


@pytest.fixture(autouse=True)
def sockets_of_broken_answers():
    """urllib leaves the socket of an answer that it cannot read to the collector, which warns of it."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


@contextlib.contextmanager
def server(answer: bytes):
    """A server that gives one answer, byte by byte as it stands, and hangs up."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve():
            with contextlib.suppress(OSError):
                connection, _ = listening.accept()
                with connection:
                    connection.recv(1 << 16)
                    connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/graph.zip"
        thread.join()


OK = b"HTTP/1.1 200 OK\r\n"
ANSWERS = {
    "garbage": (b"\x00\xff\x00" * 99 + b"\n", "could not be fetched"),
    "nothing": (b"", "could not be fetched"),
    "a long line": (OK + b"X: " + b"a" * 100_000 + b"\r\n\r\nabc", "could not be fetched"),
    "many headers": (OK + b"X: a\r\n" * 500 + b"\r\nabc", "could not be fetched"),
    "a broken chunk": (OK + b"Transfer-Encoding: chunked\r\n\r\nzz\r\nabc\r\n", "cut short"),
    "a chunk cut": (OK + b"Transfer-Encoding: chunked\r\n\r\n10\r\nabc", "cut short"),
    "cut short": (OK + b"Content-Length: 10\r\n\r\nabc", "cut short"),
    "empty": (OK + b"Content-Length: 0\r\n\r\n", "answer was empty"),
    "promised too long": (
        OK + b"Content-Length: 1000\r\n\r\nabc",
        "at most 100 bytes are taken|at most 100 B are taken",
    ),
    "too long": (OK + b"\r\n" + b"a" * 1000, "longer than"),
    "not found": (b"HTTP/1.1 404 No\r\n\r\n", "404|No"),
    "another protocol": (b"HTTP/1.1 302 Go\r\nLocation: file:///etc/passwd\r\n\r\n", "could not be fetched"),
}


@pytest.mark.parametrize(("answer", "message"), ANSWERS.values(), ids=ANSWERS)
def test_a_wrong_answer_is_one_line(answer, message, tmp_path):
    with server(answer) as url, pytest.raises(InputError, match=message) as caught:
        fetch("a graph", url, tmp_path / "file", most_bytes=100)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("head", [b"Content-Length: 3\r\n\r\n", b"\r\n"])
def test_a_right_answer_is_the_file(head, tmp_path):
    with server(OK + head + b"abc") as url:
        fetch("a graph", url, tmp_path / "file", most_bytes=100)
    assert (tmp_path / "file").read_bytes() == b"abc"


def test_a_large_answer_is_told_of(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "BLOCK", 10)
    said = []
    with server(OK + b"Content-Length: 200\r\n\r\n" + b"a" * 200) as url:
        fetch("a graph", url, tmp_path / "file", say=said.append)
    assert len(said) == 10 and said[-1].startswith("a graph: 200")
