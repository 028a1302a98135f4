"""Moving rows between ranks. Plans come from `distgnn.partition`; here they are run over MPI."""

from distgnn.comm.agree import abort_on_uncaught, agree, check_same, raise_together
from distgnn.comm.bins import make_bins
from distgnn.comm.delayed import DelayedExchange, EpochExchange
from distgnn.comm.exchange import Exchange
from distgnn.comm.sums import extreme_over_ranks, gather_arrays, start_sum_over_ranks, sum_over_ranks, wait_for_all
from distgnn.comm.transport import Counters, Transport
from distgnn.comm.wire import Wire

__all__ = [
    "Counters",
    "DelayedExchange",
    "EpochExchange",
    "Exchange",
    "Transport",
    "Wire",
    "abort_on_uncaught",
    "agree",
    "check_same",
    "extreme_over_ranks",
    "gather_arrays",
    "make_bins",
    "raise_together",
    "start_sum_over_ranks",
    "sum_over_ranks",
    "wait_for_all",
]
