"""`distgnn cache`: cuts that `dg.fit` and `train --ranks` keep, listed and cleared."""

import json
import time

import typer

from distgnn.cli.options import AsJson


def cache(
    clear: bool = typer.Option(False, "--clear", help="Remove all that is not in use."), as_json: AsJson = False
) -> None:
    """List the cuts that are kept, or clear them; DISTGNN_CACHE is their folder, DISTGNN_CACHE_SIZE their limit."""
    from distgnn.cli.display import print_columns
    from distgnn.fitting import cut_cache
    from distgnn.system.units import human_bytes

    if clear:
        gone, busy = cut_cache.clear()
        in_use = f"; {len(busy)} in use" if busy else ""
        print(f"removed {len(gone)}, {human_bytes(sum(one.num_bytes for one in gone))}{in_use}")
        return
    found, root, most = cut_cache.entries(), cut_cache.cache_root(), cut_cache.most_bytes()
    if as_json:
        rows = [{"path": str(one.path), "what": one.what, "used": one.used, "bytes": one.num_bytes} for one in found]
        print(json.dumps({"folder": str(root), "limit": most, "entries": rows}, indent=1))
        return
    total = sum(one.num_bytes for one in found)
    title = f"{root}: {human_bytes(total)} of at most {human_bytes(most)}"
    rows_of_table = [[one.what, human_bytes(one.num_bytes), _ago(one.used), one.path.name] for one in found]
    print_columns(title, ["kept", "size", "last used", "name"], rows_of_table)


def _ago(used: float) -> str:
    minutes = max(0.0, time.time() - used) / 60
    for size, name in ((1440, "d"), (60, "h")):
        if minutes >= size:
            return f"{minutes / size:.0f} {name} ago"
    return f"{minutes:.0f} min ago"
