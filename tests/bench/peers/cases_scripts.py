"""Whole scripts of PyG and DGL, with the lines that change: `# dg:` replaces a line, `# dg+` adds one."""

from pathlib import Path
from typing import Any

from cases import Case, add
from peer import Peer

SCRIPTS = Path(__file__).parent / "scripts"


def changed_text(text: str) -> tuple[str, int]:
    """A script as it runs on ranks, and the number of lines that were changed or added."""
    lines, count = [], 0
    for line in text.splitlines():
        if line.startswith("# dg+ "):
            line, count = line.removeprefix("# dg+ "), count + 1
        elif "  # dg: " in line:
            line, count = line.split("  # dg: ")[1], count + 1
        lines.append(line)
    return "\n".join(lines), count


def _run(peer: Peer, path: Path) -> Any:
    printed: list[str] = []
    ids = peer.ids
    names: dict[str, Any] = {
        "given": lambda: peer.g,
        "splits": lambda: {"train": ids.train, "valid": ids.valid, "test": ids.test},
        "pairs": lambda: (ids.pos, ids.neg),
        "print": lambda *words: printed.append(" ".join(map(str, words))),
        "__name__": path.stem,
    }
    text = path.read_text()
    if peer.dg:
        text = changed_text(text)[0]
        names |= {"parts": peer.folder}
    exec(compile(text, str(path), "exec"), names)
    return {"printed": printed, "losses": names["losses"]}


for script in sorted(SCRIPTS.glob("*.py")):
    add(
        Case(
            f"script: {script.stem.replace('_', ' ')}",
            "ordinary scripts",
            lambda peer, script=script: _run(peer, script),
            library=script.stem[:3],
            world="pages",
            changed=changed_text(script.read_text())[1],
        )
    )
