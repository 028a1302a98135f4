"""Build the site of docs/ into site/: `python tests/house/make_site.py`; `make docs` runs it.

Three packages lie beside `distgnn/` in a checkout and inside it once installed; mkdocstrings is shown links laid out as
installed (as `check_types.py` shows them to mypy). Afterwards no page may load anything from another host: the site
opens without a network.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from check_types import ROOT, link_as_installed

SITE = ROOT / "site"
LOADS = re.compile(
    r"""<(?:script|img|iframe|source)\b[^>]*\bsrc=["']?(?:https?:)?//|<link\b(?![^>]*rel=["']?(?:canonical|me)\b)"""
    r"""[^>]*\bhref=["']?(?:https?:)?//|@import\s+(?:url\()?["']?(?:https?:)?//|url\(["']?(?:https?:)?//"""
)


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        link_as_installed(Path(folder))
        command = [sys.executable, "-m", "mkdocs", "build", "--clean", "--strict", "--quiet"]
        environment = os.environ | {"DISTGNN_AS_INSTALLED": folder, "NO_MKDOCS_2_WARNING": "1"}
        done = subprocess.run(command, cwd=ROOT, env=environment, check=False)
    if done.returncode:
        return done.returncode
    found = [f"{file.relative_to(ROOT)}: {text}" for file in _text_files() for text in loads(file.read_text())]
    print("\n".join(found) if found else f"{SITE / 'index.html'}")
    return 1 if found else 0


def _text_files() -> list[Path]:
    return sorted(path for path in SITE.rglob("*") if path.suffix in (".html", ".css"))


def loads(text: str) -> list[str]:
    """What a page or style sheet would fetch from another host."""
    return [match[0] for match in LOADS.finditer(text)]


if __name__ == "__main__":
    sys.exit(main())
