"""Channel: one verb (broadcast or reduce) of one exchange site, forward or backward, under a schedule.

Legend: n rows of one message, R rows received over all bins, D width, b bytes of a row on the wire.

    sending      rows -> encoded at the width of the wire -> a message per rank, n b bytes
    receiving    what arrived is held, or averaged with what is held

Buffers, all owned by the channel and kept as long as the graph:

    held       what counts (`distgnn/comm/held_rows.py`); the layer that asks for the rows reads them in the same call
    sent       one, as large as the largest bin; from `transport.send` until `sending` is waited for MPI reads it
    received   one per bin; from `transport.receive` until the bin's requests are complete MPI writes it: not read

A bin's requests are complete after `DelayedExchange.take` of that bin, at the latest r epochs after they were started.
A message leaves in the epoch in which it is sent, as all ranks receive it in that epoch: the next one of the channel
waits for it without waiting for a rank.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from mpi4py import MPI

from distgnn.comm.held_rows import CodedRows, WideRows
from distgnn.comm.page_memory import page_aligned_zeros
from distgnn.comm.wire import Wire


@dataclass(frozen=True)
class Message:
    """The rows of one bin that travel between this rank and another.

    Args:
        rank: where it goes to or comes from.
        pieces: its rows, in the numbering of the channel.
        place: its bytes in the buffer of the bin.
    """

    rank: int
    pieces: list[slice]
    place: slice

    def rows(self) -> np.ndarray:
        """The numbers of its rows in the channel, int32 [n]."""
        return np.concatenate([np.arange(piece.start, piece.stop, dtype=np.int32) for piece in self.pieces])


def messages_of(pieces: list[list[slice]], row_bytes: int) -> Iterator[Message]:
    """The messages of a bin, one behind the other in its buffer; `pieces` by rank, ranks without rows left out."""
    first = 0
    for rank, of_rank in enumerate(pieces):
        num_rows = sum(piece.stop - piece.start for piece in of_rank)
        if num_rows:
            last = first + num_rows * row_bytes
            yield Message(rank, of_rank, slice(first, last))
            first = last


def num_bytes_of(messages: list[Message]) -> int:
    """Of all messages of a bin."""
    return messages[-1].place.stop if messages else 0


@dataclass
class Channel:
    """Held rows, and for each bin the message in flight: `received` and `requests` are by number of the bin.

    `sent` holds the messages that leave, and `sending` their requests. `tag` is the last messages' tag.
    """

    verb: str
    wire: Wire
    held: WideRows | CodedRows
    tag: int = 0
    received: dict[int, np.ndarray] = field(default_factory=dict)
    requests: dict[int, list[MPI.Request]] = field(default_factory=dict)
    sent: np.ndarray = field(default_factory=lambda: np.empty(0, np.uint8))
    sending: list[MPI.Request] = field(default_factory=list)
    free: dict[int, np.ndarray] = field(default_factory=dict)

    def messages(self, pieces: list[list[slice]]) -> list[Message]:
        """The messages of a bin of this channel."""
        return list(messages_of(pieces, self.wire.row_bytes(self.held.like)))

    def buffer_to_send(self, messages: list[Message]) -> np.ndarray:
        """A buffer for the messages of a bin; `sending` must have been waited for."""
        num_bytes = num_bytes_of(messages)
        if len(self.sent) < num_bytes:
            self.sent = page_aligned_zeros((num_bytes,), np.uint8)
        return self.sent

    def buffer_to_receive(self, number: int, messages: list[Message], still_counts: bool) -> np.ndarray:
        """The buffer of a bin, from now on in `received`; still_counts: what is held counts until that arrives."""
        free = self.free.pop(number, None)
        if free is None and not still_counts:
            free = self.held.give_up(number)
        self.received[number] = page_aligned_zeros((num_bytes_of(messages),), np.uint8) if free is None else free
        return self.received[number]

    def take(self, number: int) -> None:
        """What was received of a bin is held from now on; its requests are complete."""
        free = self.held.take(number, self.received.pop(number))
        del self.requests[number]
        if free is not None:
            self.free[number] = free

    def pack(self, message: Message, buffer: np.ndarray, rows: np.ndarray, chosen: np.ndarray, key: tuple) -> None:
        """Write a message of `rows` (row i of the channel is rows[chosen[i]]) into its bytes of the send buffer."""
        out = self.wire.rows(buffer, self.held.like)
        self.wire.encode(self.verb, rows, chosen[message.rows()], self.wire.ids(self.verb), out, key)

    def num_bytes(self) -> int:
        """Memory of everything that the channel holds."""
        buffers = (self.sent, *self.received.values(), *self.free.values())
        return self.held.num_bytes() + sum(buffer.nbytes for buffer in buffers)

    def state(self) -> dict[str, np.ndarray]:
        """What the channel must have to go on to the same bits, as copies; nothing may be in flight any more."""
        state = self.held.state() | {f"pending.{number}": received for number, received in self.received.items()}
        return {name: array.copy() for name, array in state.items()}

    def load_state(self, state: dict[str, np.ndarray]) -> None:
        """Become the channel whose `state` this is."""
        self.held.load_state(state)
        for name, array in state.items():
            if name.startswith("pending."):
                number = int(name.removeprefix("pending."))
                self.received[number], self.requests[number] = array.copy(), []
