"""The delayed schedule cd-r: a bin of rows leaves in epoch e without waiting and counts from epoch e + r on; and rows
that travel at another width, or only when they have moved, with any delay.

Legend: S / T source and target halos, R rows that owners receive in a reduce, D width.

Every leg (broadcast or reduce, of one exchange site, forward or backward) holds what arrived last:

    epoch e, bin b = e mod r:  take what was sent of bin b in epoch e - r into the held rows; send bin b of now; go on
                               with the held rows
    warm-up epochs:            synchronous; they fill all held rows

Under the rule of the paper only what was taken in this epoch counts.

Source: Md et al., DistGNN, SC'21, section 5 (cd-r); held rows and delayed gradients as in PipeGCN (Wan et al.,
ICLR'22). Which message counts is a matter of epochs, not of arrival: a run repeated is bit-identical.
"""

import numpy as np

from distgnn import kernels
from distgnn.comm.bins import Bin
from distgnn.comm.channel import Care, Leg
from distgnn.comm.exchange import Exchange
from distgnn.comm.lasting import lasting_rows
from distgnn.comm.parcels import room_for
from distgnn.comm.wire import Wire


class DelayedExchange:
    """An exchange whose messages count `delay` epochs after they were sent, and travel at the width of `wire`.

    It has the verbs of `Exchange`; `at` says for which site and epoch. Delay 0 (one bin) is synchronous.

    Collective: every verb.

    Args:
        exact: the synchronous exchange of the same plan; used in warm-up epochs.
        bins: of the plan (`make_bins`), max(delay, 1) of them.
        delay: epochs between sending a row and using it.
        warmup: epochs at the start that are exact: synchronous, and rows travel whole.
        wire: width of the messages.
        care: smoothing, adaptive sending and error feedback.
        held: False counts remote rows only in the epoch in which they arrive (the paper's rule).
    """

    def __init__(
        self,
        exact: Exchange,
        bins: list[Bin],
        delay: int,
        warmup: int,
        wire: Wire,
        *,
        care: Care | None = None,
        held: bool = True,
    ):
        self.exact, self.bins, self.delay, self.warmup, self.wire = exact, bins, delay, warmup, wire
        self.care, self.held = care or Care(), held
        self.plan, self.transport = exact.plan, exact.transport
        self._first_late_epoch = warmup
        self._legs: dict[tuple[str, int], Leg] = {}
        self._site, self._epoch, self._seed, self._tag = 0, 0, 0, 0

    def at(self, site: int, epoch: int, seed: int = 0) -> "DelayedExchange":
        """Turn to one exchange of the model in one epoch; `seed` is that of random rounding."""
        self._site, self._epoch, self._seed = site, epoch, seed
        return self

    @property
    def synchronous(self) -> bool:
        """Is this a warm-up epoch?"""
        return self.is_synchronous(self._epoch)

    def is_synchronous(self, epoch: int) -> bool:
        """Is this one of the warm-up epochs?"""
        return epoch < self._first_late_epoch

    @property
    def keeps_rows(self) -> bool:
        """Do rows arrive as the synchronous exchange would bring them, in the same epoch and to the bit?"""
        return self.delay == 0 and self.wire.whole and not self.care.adaptive

    @property
    def bin(self) -> Bin:
        """The rows that leave in this epoch."""
        return self.bins[self._number]

    @property
    def _number(self) -> int:
        return self._epoch % len(self.bins)

    def arrived(self, epoch: int) -> Bin | None:
        """The bin of which a message is taken in this epoch; None where none was sent yet."""
        return self.bins[epoch % len(self.bins)] if epoch - self.delay >= self._first_late_epoch else None

    def start_broadcast(self, rows: np.ndarray) -> None:
        """Send this epoch's bin of owned `rows` [O, D]."""
        chosen = self.plan.broadcast_rows
        leg = self._leg("broadcast", len(chosen), self.plan.num_source_halos, rows)
        if self.synchronous:
            leg.remember(rows, chosen)
            self.exact.start_broadcast(rows, into=leg.held)
            return
        self._turn_over(leg, rows, chosen, self.bin.sources_owner, self.bin.sources_halo)

    def finish_broadcast(self) -> np.ndarray:
        """The source halos [S, D]: what arrived last."""
        if self.synchronous:
            return self.exact.finish_broadcast()
        return self._rows_held(self._legs["broadcast", self._site], self.bin.sources_halo)

    def target_rows(self, like: np.ndarray) -> np.ndarray:
        """The buffer [T, D] for partial sums; only `target_pieces` of it are sent."""
        return self.exact.target_rows(like)

    def target_pieces(self) -> list[slice]:
        """The target halos whose partial sums are sent in this epoch."""
        if self.synchronous:
            return self.exact.target_pieces()
        return [piece for pieces in self.bin.targets_halo for piece in pieces]

    def start_reduce(self, targets: np.ndarray) -> None:
        """Send this epoch's bin of partial sums `targets` [T, D]."""
        chosen = np.arange(len(targets), dtype=np.int32)
        leg = self._leg("reduce", len(targets), int(self.plan.reduce_indptr[-1]), targets)
        if self.synchronous:
            leg.remember(targets, chosen)
            self.exact.start_reduce(targets, into=leg.held)
            return
        self._turn_over(leg, targets, chosen, self.bin.targets_halo, self.bin.targets_owner)

    def finish_reduce(self, out: np.ndarray) -> None:
        """Add the partial sums that count to owned rows `out` [O, D], in the order of ranks."""
        if self.synchronous:
            self.exact.finish_reduce(out)
            return
        partials = self._rows_held(self._legs["reduce", self._site], self.bin.targets_owner)
        if self.held:
            self.exact.add_partials(out, partials)
        elif self.arrived(self._epoch):
            for pieces in self.bin.targets_owner:
                for piece in pieces:
                    kernels.add_rows(out, self.plan.reduce_rows[piece], partials[piece])

    def progress(self) -> None:
        """Let MPI move what is in flight, of this and of earlier epochs."""
        self.exact.progress()
        if not self.synchronous:
            self.transport.progress()

    def drain(self) -> None:
        """Wait until nothing is in flight; what arrives stays in its buffer and is not taken."""
        for leg in self._legs.values():
            for requests in leg.requests.values():
                self.transport.wait(requests)

    def buffer_bytes(self) -> int:
        """Memory for held rows and messages in flight."""
        return sum(leg.num_bytes() for leg in self._legs.values())

    def state_dict(self) -> dict[str, np.ndarray]:
        """Everything that the coming epochs depend on, as arrays of this rank (copies).

        Collective: yes. Messages in flight are completed, not taken: they are part of the state (`pending`) and count
        in the epoch in which they would have counted. Going on after it, and going on from it with `load_state_dict`
        in another process, give the same bits. Call it between epochs.

        Returns: `first_late_epoch` int64 [1], and for each leg "VERB.SITE.held" [rows received, D],
            "VERB.SITE.pending.BIN" uint8 [bytes], and with the options that need them "VERB.SITE.residual" and
            "VERB.SITE.reference" [rows sent, D]. Position in the bins is a matter of the epoch alone.
        """
        self.drain()
        state = {"first_late_epoch": np.array([self._first_late_epoch], np.int64)}
        for (verb, site), leg in self._legs.items():
            state |= {f"{verb}.{site}.{name}": array for name, array in leg.state(self.delay > 0).items()}
        return state

    def load_state_dict(self, state: dict[str, np.ndarray]) -> None:
        """Become the exchange whose `state_dict` this is; the partition and the settings must be the same.

        Raises:
            ValueError: where an array has another shape than this rank's plan asks for.
        """
        self.drain()
        self._legs = {}
        by_leg: dict[tuple[str, int], dict[str, np.ndarray]] = {}
        for name, array in state.items():
            if name != "first_late_epoch":
                verb, site, rest = name.split(".", 2)
                by_leg.setdefault((verb, int(site)), {})[rest] = array
        for (verb, site), arrays in by_leg.items():
            self._legs[verb, site] = self._leg_of(verb, site, arrays)
        self._first_late_epoch = int(state["first_late_epoch"][0])

    def refill(self, epoch: int) -> None:
        """Drop all rows, held and pending; the next `warmup` epochs from `epoch` on are synchronous and fill them.

        Collective: yes. For a checkpoint that is resumed at another rank count or from another partition.
        """
        self.drain()
        self._legs = {}
        self._first_late_epoch = epoch + self.warmup

    def _leg_of(self, verb: str, site: int, arrays: dict[str, np.ndarray]) -> Leg:
        num_sent, num_received = self.plan.num_target_halos, int(self.plan.reduce_indptr[-1])
        if verb == "broadcast":
            num_sent, num_received = len(self.plan.broadcast_rows), self.plan.num_source_halos
        like = arrays["held"]
        leg = Leg.empty(verb, self.wire, self.care, num_sent, lasting_rows((num_received, like.shape[1]), like.dtype))
        expected = {name: getattr(leg, name) for name in ("held", "residual", "reference")}
        for number, one in enumerate(self.bins):
            receiving = one.sources_halo if verb == "broadcast" else one.targets_owner
            expected[f"pending.{number}"] = room_for(leg.parcels(receiving))
        for name, array in arrays.items():
            needed = expected.get(name)
            if needed is None or array.shape != needed.shape or array.dtype != needed.dtype:
                what = "nothing of that name" if needed is None else f"{needed.dtype} {needed.shape}"
                raise ValueError(
                    f"{name} of {verb} {site} is {array.dtype} {array.shape}; this rank's part and settings need "
                    f"{what}: load the state of the same partition and settings, or refill"
                )
        leg.take_state(arrays)
        return leg

    def _leg(self, verb: str, num_sent: int, num_received: int, like: np.ndarray) -> Leg:
        key = (verb, self._site)
        if key not in self._legs:
            held = lasting_rows((num_received, like.shape[1]), like.dtype)
            self._legs[key] = Leg.empty(verb, self.wire, self.care, num_sent, held)
        return self._legs[key]

    def _rows_held(self, leg: Leg, receiving: list[list[slice]]) -> np.ndarray:
        """The held rows of this site; with delay 0 what is on its way is waited for."""
        if self.delay == 0:
            self._take(leg, receiving)
        return leg.held

    def _turn_over(self, leg: Leg, rows: np.ndarray, chosen: np.ndarray, sending, receiving) -> None:
        """Take the bin's last message, then send the bin anew: `chosen` numbers `rows` as `sending` counts them."""
        self.exact.release()
        tag = self._tag = self.transport.begin(leg.verb, rows.shape[1])
        if self.delay > 0:
            self._take(leg, receiving)
        leaving, arriving = leg.parcels(sending), leg.parcels(receiving)
        sent, received = leg.rooms(self._number, leaving, arriving)
        requests = []
        for parcel in arriving:
            requests += self.transport.receive(received[parcel.room], parcel.rank, tag)
        for parcel in leaving:
            room = sent[parcel.room]
            with self.transport.counters.timing("pack_seconds"):
                filled = leg.pack(parcel, room, rows, chosen, (self._seed, self._epoch, self._site))
            requests += self.transport.send(room, parcel.rank, tag, filled)
        leg.requests[self._number] = requests

    def _take(self, leg: Leg, receiving: list[list[slice]]) -> None:
        """Held rows of the bin take up what was received of it; nothing, if nothing was sent yet."""
        if self._number not in leg.requests:
            return
        self.transport.wait(leg.requests[self._number], self._tag)
        received = leg.received[self._number]
        with self.transport.counters.timing("pack_seconds"):
            for parcel in leg.parcels(receiving):
                leg.unpack(parcel, received[parcel.room])
