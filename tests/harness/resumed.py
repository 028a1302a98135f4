"""Runs that are stopped and go on: what stops one, and the numbers that must then be the same."""

import os
import signal

TIMES = ("seconds", "sent_bytes", "exchange_waits")  # in names of what is measured, not computed


def numbers(records: list[dict]) -> list[dict]:
    """Records without what is measured."""
    return [{name: value for name, value in one.items() if not any(word in name for word in TIMES)} for one in records]


def stop_after(epoch: int, number: int = signal.SIGUSR1):
    """An `on_epoch` that sends this process a signal after an epoch."""

    def on_epoch(record: dict) -> None:
        if record["epoch"] == epoch:
            os.kill(os.getpid(), number)

    return on_epoch
