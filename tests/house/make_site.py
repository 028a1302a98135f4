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
        config = Path(folder) / "mkdocs.yml"
        config.write_text(with_extras((ROOT / "mkdocs.yml").read_text()))
        command = [sys.executable, "-m", "mkdocs", "build", "--clean", "--strict", "--quiet", "--config-file", config]
        environment = os.environ | {"DISTGNN_AS_INSTALLED": folder, "NO_MKDOCS_2_WARNING": "1"}
        done = subprocess.run(command, cwd=ROOT, env=environment, check=False)
    if done.returncode:
        return done.returncode
    found = [f"{file.relative_to(ROOT)}: {text}" for file in _text_files() for text in loads(file.read_text())]
    print("\n".join(found) if found else f"{SITE / 'index.html'}")
    return 1 if found else 0


def with_extras(text: str) -> str:
    """The configuration for any folder, with the pages of the extras that are here."""
    pages = "".join(f"      - extras/{page.name}\n" for page in sorted((ROOT / "docs" / "extras").glob("*.md")))
    for name in ("docs", "site"):
        text = text.replace(f"_dir: {name}\n", f"_dir: {ROOT / name}\n")
    return text.replace("  - Benchmarks:\n", f"  - Extras:\n{pages}  - Benchmarks:\n" if pages else "  - Benchmarks:\n")


def _text_files() -> list[Path]:
    return sorted(path for path in SITE.rglob("*") if path.suffix in (".html", ".css"))


def loads(text: str) -> list[str]:
    """What a page or style sheet would fetch from another host."""
    return [match[0] for match in LOADS.finditer(text)]


if __name__ == "__main__":
    sys.exit(main())
