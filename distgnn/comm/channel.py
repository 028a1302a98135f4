"""Channel: one verb (broadcast or reduce) of one exchange site, forward or backward, under a schedule.

Legend: n rows of one message, R rows received over all bins, D width, b bytes of a row on the wire.

    sending      rows -> encoded at the width of the wire -> a message per rank, n b bytes
    receiving    held = arrived, or held = weight * held + (1 - weight) * arrived

Buffers, all owned by the channel and kept as long as the graph:

    held       [R, D]    written when a message is taken; the layer that asks for the rows reads them in the same call
    sent       one per bin; from `transport.send` until the bin's requests are complete MPI reads it: not written
    received   one per bin; from `transport.receive` until the bin's requests are complete MPI writes it: not read

A bin's requests are complete after `DelayedExchange.take` of that bin, at the latest r epochs after they were started.

Source: smoothing: PipeGCN (Wan et al., ICLR'22).
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from mpi4py import MPI

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


def buffer_for(messages: list[Message]) -> np.ndarray:
    """A buffer for all messages of a bin, uint8."""
    return page_aligned_zeros((messages[-1].place.stop if messages else 0,), np.uint8)


@dataclass
class Channel:
    """Held rows, and for each bin the message in flight: `sent`, `received` and `requests` are by number of the bin.

    `late_row_average` is the weight of the held row when a row arrives (0: it is replaced). `tag` is the last messages'
    tag.
    """

    verb: str
    wire: Wire
    late_row_average: float
    held: np.ndarray
    tag: int = 0
    sent: dict[int, np.ndarray] = field(default_factory=dict)
    received: dict[int, np.ndarray] = field(default_factory=dict)
    requests: dict[int, list[MPI.Request]] = field(default_factory=dict)

    def messages(self, pieces: list[list[slice]]) -> list[Message]:
        """The messages of a bin of this channel."""
        return list(messages_of(pieces, self.wire.row_bytes(self.held)))

    def buffers(self, number: int, sending: list[Message], receiving: list[Message]) -> tuple[np.ndarray, np.ndarray]:
        """The buffers (sent, received) of a bin, made when it is first sent."""
        if number not in self.sent:
            self.sent[number] = buffer_for(sending)
        if number not in self.received:
            self.received[number] = buffer_for(receiving)
        return self.sent[number], self.received[number]

    def pack(self, message: Message, buffer: np.ndarray, rows: np.ndarray, chosen: np.ndarray, key: tuple) -> None:
        """Write a message of `rows` (row i of the channel is rows[chosen[i]]) into its bytes of the send buffer."""
        out = self.wire.rows(buffer, self.held)
        self.wire.encode(self.verb, rows, chosen[message.rows()], self.wire.ids(self.verb), out, key)

    def unpack(self, message: Message, buffer: np.ndarray) -> None:
        """The held rows of a message take up what arrived, `buffer` being its bytes."""
        packed, first = self.wire.rows(buffer, self.held), 0
        for piece in message.pieces:
            last = first + piece.stop - piece.start
            self._hold(piece, packed[first:last])
            first = last

    def _hold(self, piece: slice, packed: np.ndarray) -> None:
        if not self.late_row_average:
            self.wire.decode(packed, self.held[piece])
            return
        arrived = np.empty((len(packed), self.held.shape[1]), self.held.dtype)
        self.wire.decode(packed, arrived)
        arrived *= 1 - self.late_row_average
        arrived += self.held[piece] * np.asarray(self.late_row_average, self.held.dtype)
        self.held[piece] = arrived

    def num_bytes(self) -> int:
        """Memory of everything that the channel holds."""
        return sum(buffer.nbytes for buffer in (self.held, *self.sent.values(), *self.received.values()))

    def state(self, pending: bool) -> dict[str, np.ndarray]:
        """What the channel must have to go on to the same bits, as copies; nothing may be in flight any more."""
        state = {"held": self.held}
        if pending:
            state |= {f"pending.{number}": self.received[number] for number in self.requests}
        return {name: array.copy() for name, array in state.items()}

    def load_state(self, state: dict[str, np.ndarray]) -> None:
        """Become the channel whose `state` this is."""
        for name, array in state.items():
            if name == "held":
                np.copyto(self.held, array)
            else:
                number = int(name.removeprefix("pending."))
                self.received[number], self.requests[number] = array.copy(), []
