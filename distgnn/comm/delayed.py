"""The delayed schedule cd-r: a bin of rows is sent in epoch e without waiting and counts from epoch e + r on. Also
rows that travel at another width, with any delay.

Legend: S / T source and target halos, R rows that owners receive in a reduce, D width.

Every channel (broadcast or reduce, of one exchange site, forward or backward) holds what arrived last:

    epoch e, bin b = e mod r:  take what was sent of bin b in epoch e - r into the held rows; send bin b of now; go on
                               with the held rows
    warm-up epochs:            synchronous; they fill all held rows

Under the rule of the paper only what was taken in this epoch counts.

Source: Md et al., DistGNN, SC'21, section 5 (cd-r); held rows and delayed gradients as in PipeGCN (Wan et al.,
ICLR'22). Which message counts is a matter of epochs, not of arrival: a run repeated is bit-identical.
"""

from dataclasses import dataclass, field

import numpy as np

from distgnn import kernels
from distgnn.comm.bins import Bin
from distgnn.comm.channel import Channel, CodedRows, WideRows, num_bytes_of
from distgnn.comm.exchange import Exchange
from distgnn.comm.transport import Transport, page_aligned_zeros
from distgnn.comm.wire import Wire
from distgnn.partition import ExchangePlan

ANOTHER = "load the state of the same partition and settings, or refill"


@dataclass(eq=False)
class DelayedExchange:
    """An exchange whose messages count `delay` epochs after they were sent, and travel at the width of `wire`.

    It owns the channels. `at` gives the verbs of `Exchange` for one site and epoch. Delay 0 (one bin) is synchronous.

    Args:
        exact: the synchronous exchange of the same plan; used in warm-up epochs.
        bins: of the plan (`make_bins`), max(delay, 1) of them.
        delay: epochs between sending a row and using it.
        warmup: epochs at the start that are exact: synchronous, and rows travel whole.
        wire: width of the messages.
        late_row_average: weight of the held row when one arrives (0: it is replaced).
        held: False counts remote rows only in the epoch in which they arrive (the paper's rule).
    """

    exact: Exchange
    bins: list[Bin]
    delay: int
    warmup: int
    wire: Wire
    late_row_average: float = field(default=0.0, kw_only=True)
    held: bool = field(default=True, kw_only=True)

    def __post_init__(self) -> None:
        self.plan: ExchangePlan = self.exact.plan
        self.transport: Transport = self.exact.transport
        self._first_late_epoch, self._epoch = self.warmup, -1  # of the last late exchange
        self._channels: dict[tuple[str, int], Channel] = {}

    def at(self, site: int, epoch: int, seed: int = 0) -> "EpochExchange":
        return EpochExchange(self, site, epoch, seed)

    def is_synchronous(self, epoch: int) -> bool:
        """Is this one of the warm-up epochs?"""
        return epoch < self._first_late_epoch

    @property
    def keeps_rows(self) -> bool:
        """Do rows arrive as the synchronous exchange would bring them, in the same epoch and to the bit?"""
        return self.delay == 0 and self.wire.whole

    def arrived(self, epoch: int) -> Bin | None:
        """The bin of which a message is taken in this epoch; None where none was sent yet."""
        return self.bins[epoch % len(self.bins)] if epoch - self.delay >= self._first_late_epoch else None

    def channel(self, verb: str, site: int, like: np.ndarray) -> Channel:
        """The channel of a verb at a site, made when first asked for, with rows as wide as `like`."""
        if (verb, site) not in self._channels:
            broadcast = verb == "broadcast"
            num_rows = self.plan.num_source_halos if broadcast else int(self.plan.reduce_indptr[-1])
            pieces = [one.sources_halo if broadcast else one.targets_owner for one in self.bins]
            held: WideRows | CodedRows
            if self.holds_codes:
                held = CodedRows(self.wire, pieces, like[:0].copy(), num_rows)
            else:
                rows = page_aligned_zeros((num_rows, like.shape[1]), like.dtype)
                held = WideRows(self.wire, pieces, rows, self.late_row_average)
            self._channels[verb, site] = Channel(verb, held)
        return self._channels[verb, site]

    @property
    def holds_codes(self) -> bool:
        """Are rows held as they arrived? Not where they are averaged, nor under the paper's rule."""
        return self.held and not self.wire.whole and not self.late_row_average

    def take(self, channel: Channel, number: int) -> None:
        """Complete what arrives of a bin; it is held from now on. Nothing if none was sent."""
        if number not in channel.requests:
            return
        self.transport.wait(channel.requests[number], channel.tag)
        with self.transport.counters.timing("pack_seconds"):
            free = channel.held.take(number, channel.received.pop(number))
        del channel.requests[number]
        if free is not None:
            channel.free[number] = free

    def release(self, epoch: int) -> None:
        """Give back the memory of exact messages, and in a new epoch of target halos, of which one bin is used."""
        roles = ["packed", "partials"] if self.holds_codes else ["packed", "sources", "partials"]
        if epoch != self._epoch:
            self.exact.drain()
            roles.append("targets")
        self._epoch = epoch
        self.exact.release(*roles)

    def drain(self) -> None:
        """Wait until nothing is in flight; what arrives stays in its buffer and is not taken. Collective: yes."""
        for channel in self._channels.values():
            for requests in (*channel.requests.values(), channel.sending):
                self.transport.wait(requests)

    def blocks(self) -> list[tuple[str, object]]:
        channels = list(self._channels.values())
        held: list[tuple[str, object]] = [("held rows", one.held) for one in channels]
        return held + [("messages", (one.sent, one.received, one.free)) for one in channels]

    def buffer_bytes(self) -> int:
        return sum(channel.num_bytes() for channel in self._channels.values())

    def state_dict(self) -> dict[str, np.ndarray]:
        """Everything that the coming epochs depend on, as arrays of this rank (copies).

        Collective: yes. Messages in flight are completed, not taken: they are part of the state (`pending`) and count
        in the epoch in which they would have counted. Going on after it, and going on from it with `load_state_dict`
        in another process, give the same bits. Call it between epochs.

        Returns: `first_late_epoch` int64 [1], and where rows are late for each channel "VERB.SITE.pending.BIN" uint8
            [bytes], and what is held: "VERB.SITE.held" [rows received, D], or as it arrived "VERB.SITE.held.BIN" and
            "VERB.SITE.width". Position in the bins is a matter of the epoch alone.
        """
        self.drain()
        state = {"first_late_epoch": np.array([self._first_late_epoch], np.int64)}
        for (verb, site), channel in self._channels.items() if self.delay > 0 else ():
            state |= {f"{verb}.{site}.{name}": array for name, array in channel.state().items()}
        return state

    def load_state_dict(self, state: dict[str, np.ndarray]) -> None:
        """Become the exchange whose `state_dict` this is; the partition and the settings must be the same.

        Collective: yes.

        Raises:
            ValueError: where an array has another shape than this rank's plan asks for.
        """
        self.drain()
        self._channels = {}
        by_channel: dict[tuple[str, int], dict[str, np.ndarray]] = {}
        for name, array in state.items():
            if name != "first_late_epoch":
                verb, number, rest = name.split(".", 2)
                by_channel.setdefault((verb, int(number)), {})[rest] = array
        for (verb, site), arrays in by_channel.items() if self.delay > 0 else ():
            width, like = arrays.get("width"), arrays.get("held")  # [*, D] of the width and dtype of the channel's rows
            if like is None:
                if not self.holds_codes or width is None or width.shape != (1,) or width.dtype != np.int64:
                    raise ValueError(f"{verb} {site} lacks held rows: {ANOTHER}")
                like = np.empty((0, int(width[0])), np.float32)
            channel = self.channel(verb, site, like)
            for name, array in arrays.items():
                shapes = channel.held.shapes(name)
                number = name.removeprefix("pending.")
                if number != name and number in map(str, range(len(self.bins))):
                    messages = channel.messages(channel.held.pieces[int(number)])
                    shapes = [((num_bytes_of(messages),), np.dtype(np.uint8))]
                if (array.shape, array.dtype) not in shapes:
                    what = " or ".join(f"{dtype} {shape}" for shape, dtype in shapes) or "nothing of that name"
                    raise ValueError(
                        f"{name} of {verb} {site} is {array.dtype} {array.shape}; this rank's part and settings need "
                        f"{what}: {ANOTHER}"
                    )
            channel.load_state(arrays)
        self._first_late_epoch = int(state["first_late_epoch"][0])

    def refill(self, epoch: int) -> None:
        """Drop all rows, held and pending; the next `warmup` epochs from `epoch` on are synchronous and fill them.

        Collective: yes. For a checkpoint that is resumed at another rank count or from another partition.
        """
        self.drain()
        self._channels = {}
        self._first_late_epoch = epoch + self.warmup


@dataclass(frozen=True)
class EpochExchange:
    """A delayed exchange at one site of the model in one epoch: the verbs of `Exchange`.

    It holds no rows: they belong to the exchange's channels, or in warm-up epochs to the exact exchange.

    Collective: every verb.
    """

    late: DelayedExchange
    site: int
    epoch: int
    seed: int = 0

    @property
    def transport(self) -> Transport:
        return self.late.transport

    @property
    def synchronous(self) -> bool:
        return self.late.is_synchronous(self.epoch)

    @property
    def bin(self) -> Bin:
        """The rows that are sent in this epoch."""
        return self.late.bins[self._number]

    @property
    def _number(self) -> int:
        return self.epoch % len(self.late.bins)

    def start_broadcast(self, rows: np.ndarray) -> None:
        """Send this epoch's bin of owned `rows` [O, D]; they are free again when this returns."""
        channel = self.late.channel("broadcast", self.site, rows)
        if self.synchronous:
            self.late.exact.start_broadcast(rows, into=channel.held.place(), in_pieces=True)
            return
        self._take_and_send(channel, rows, self.late.plan.broadcast_rows, self.bin.sources_owner, self.bin.sources_halo)

    def finish_broadcast(self) -> np.ndarray:
        """The source halos [S, D]: what arrived last. Valid until this site's broadcast of the next epoch."""
        held = self._held("broadcast")
        if self.synchronous:
            sources = self.late.exact.finish_broadcast()
            held.hold()
            return sources
        return held.sources(self.late.exact)

    def target_rows(self, like: np.ndarray) -> np.ndarray:
        """The buffer [T, D] for partial sums, as in `Exchange`; only `target_pieces` of it are sent."""
        return self.late.exact.target_rows(like)

    def target_pieces(self) -> list[slice]:
        if self.synchronous:
            return self.late.exact.target_pieces()
        return self.bin.targets_computed

    def start_reduce(self, targets: np.ndarray) -> None:
        """Send this epoch's bin of partial sums `targets` [T, D]; as in `Exchange` they stay untouched until the next
        `target_rows`."""
        channel = self.late.channel("reduce", self.site, targets)
        if self.synchronous:
            self.late.exact.start_reduce(targets, into=channel.held.place())
            return
        chosen = np.arange(len(targets), dtype=np.int32)
        self._take_and_send(channel, targets, chosen, self.bin.targets_halo, self.bin.targets_owner)

    def finish_reduce(self, out: np.ndarray) -> None:
        """Add the partial sums that count to owned rows `out` [O, D], in the order of ranks."""
        late, held = self.late, self._held("reduce")
        if self.synchronous:
            partials = late.exact.arrived()
            held.hold()
            late.exact.add_partials(out, partials)
        elif late.held:
            held.add_to(out, late.exact)
        elif late.arrived(self.epoch):
            partials = held.sources(late.exact)
            for pieces in self.bin.targets_owner:
                for piece in pieces:
                    kernels.add_rows(out, late.plan.reduce_rows[piece], partials[piece])

    def progress(self) -> None:
        self.late.exact.progress()
        if not self.synchronous:
            self.transport.progress()

    def _held(self, verb: str) -> WideRows | CodedRows:
        """The held rows of this site; with delay 0 what is on its way is waited for."""
        channel = self.late._channels[verb, self.site]
        if self.late.delay == 0:
            self.late.take(channel, self._number)
        return channel.held

    def _take_and_send(
        self,
        channel: Channel,
        rows: np.ndarray,
        chosen: np.ndarray,
        sending: list[list[slice]],
        receiving: list[list[slice]],
    ) -> None:
        """Take the bin's last message, then send the bin anew: row i of the channel is rows[chosen[i]]."""
        late, transport, number = self.late, self.transport, self._number
        late.release(self.epoch)
        channel.tag = transport.begin(channel.verb, rows.shape[1])
        if late.delay > 0:
            late.take(channel, number)
        leaving, arriving = channel.messages(sending), channel.messages(receiving)
        free = channel.free.pop(number, None)
        if free is None and late.delay == 0:  # what is held counts no more
            free = channel.held.give_up(number)
        received = page_aligned_zeros((num_bytes_of(arriving),), np.uint8) if free is None else free
        channel.received[number], channel.requests[number] = received, []
        for rank, _, place in arriving:
            channel.requests[number] += transport.receive(received[place], rank, channel.tag)
        transport.wait(channel.sending, channel.tag)
        channel.sending = []
        if len(channel.sent) < num_bytes_of(leaving):
            channel.sent = page_aligned_zeros((num_bytes_of(leaving),), np.uint8)
        for rank, pieces, place in leaving:
            buffer = channel.sent[place]
            with transport.counters.timing("pack_seconds"):
                packed = chosen[np.concatenate([np.arange(one.start, one.stop, dtype=np.int32) for one in pieces])]
                wire, key = late.wire, (self.seed, self.epoch, self.site)
                out = wire.rows(buffer, channel.held.like)
                wire.encode(channel.verb, rows, packed, wire.ids(channel.verb), out, key)
            channel.sending += transport.send(buffer, rank, channel.tag)
