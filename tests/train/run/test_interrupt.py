"""A signal that comes again ends no run that has stopped already."""

import os
import signal

from distgnn.train.run.interrupt import Interrupts


def test_what_asks_again_ends_no_run_that_has_stopped():
    before = signal.signal(signal.SIGUSR1, signal.SIG_DFL)
    try:
        with Interrupts() as interrupts:
            os.kill(os.getpid(), signal.SIGUSR1)
        assert (interrupts.received, signal.getsignal(signal.SIGUSR1)) == (signal.SIGUSR1, signal.SIG_IGN)
    finally:
        signal.signal(signal.SIGUSR1, before)
