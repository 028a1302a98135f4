"""Numbers with units, as people read them."""


def human_bytes(count: float) -> str:
    """Bytes with a unit of 1000: 1.5 GB."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.3g} {unit}" if unit != "B" else f"{count:.0f} B"
        count /= 1000
    return f"{count:.3g} TB"


def human_count(count: float) -> str:
    """A number with a unit of 1000: 1.5 M."""
    for unit in ("", " k", " M"):
        if count < 1000:
            return f"{count:.3g}{unit}"
        count /= 1000
    return f"{count:.3g} G"


def human_seconds(seconds: float) -> str:
    """Seconds with a unit: 12.3 ms, 4.56 s, 3 min 20 s."""
    if seconds < 1:
        return f"{1000 * seconds:.3g} ms"
    return f"{seconds:.3g} s" if seconds < 100 else f"{int(seconds // 60)} min {int(seconds % 60)} s"


def human_share(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.2f} %"
