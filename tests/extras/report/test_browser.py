"""The page in headless Chromium: no errors on its console, nothing wider than the window, a picture and a PDF."""

import json
import shutil
import subprocess

import pytest
from report_inputs import bench_row, write_bench, write_run

from distgnn.extras.report.read import read_inputs
from distgnn.extras.report.sections import make_page

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        CHROMIUM is None, reason="no Chromium here: install chromium to look at pages as a browser does"
    ),
]
MEASURE = """
<script>
const wide = [...document.querySelectorAll('body *')].filter(one => !one.closest('.wide, svg')
  && one.getBoundingClientRect().right > document.documentElement.clientWidth + 1);
console.log('MEASURED ' + JSON.stringify({wide: wide.map(one => one.tagName + ' ' + one.textContent.slice(0, 40)),
  images: document.images.length, resources: performance.getEntriesByType('resource').map(one => one.name)}));
</script>
"""


@pytest.fixture(scope="module")
def source(tmp_path_factory, partition) -> str:
    folder = tmp_path_factory.mktemp("browser")
    names = ("cd-0", "cd-5", "cd-5/int8", "0c", "paper", "cd-0/a-long-name-of-a-contender-that-does-not-fit")
    bench = write_bench(folder / "bench.json", [bench_row(name) for name in names])
    runs = [write_run(folder / "one"), write_run(folder / "two", "cd-5"), write_run(folder / "three", finished=False)]
    return make_page(read_inputs([*map(str, runs), str(bench), str(partition)]))


def browse(page, *options: str) -> str:
    """What Chromium writes to standard error about a page."""
    fixed = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--hide-scrollbars"]
    profile = f"--user-data-dir={page.parent / 'profile'}"
    command = [CHROMIUM, *fixed, profile, "--enable-logging=stderr", *options, page.as_uri()]
    return subprocess.run(command, capture_output=True, text=True, timeout=900, check=True).stderr


@pytest.mark.parametrize(("width", "dark"), [(1200, False), (420, True)], ids=["wide, light", "narrow, dark"])
def test_no_console_errors_and_nothing_sticks_out(source, tmp_path, width, dark):
    page, picture = tmp_path / "page.html", tmp_path / "page.png"
    page.write_text(source.replace("</body>", f"{MEASURE}</body>"))
    options = [f"--window-size={width},4000", f"--screenshot={picture}", *["--force-dark-mode"] * dark]
    said = [line for line in browse(page, *options).splitlines() if "CONSOLE" in line]
    assert len(said) == 1, said
    measured = json.loads(said[0].split("MEASURED ", 1)[1].split('", source')[0].replace('\\"', '"'))
    assert measured == {"wide": [], "images": 0, "resources": []}
    assert picture.stat().st_size > 20_000


def test_it_prints(source, tmp_path):
    page, paper = tmp_path / "page.html", tmp_path / "page.pdf"
    page.write_text(source)
    browse(page, "--no-pdf-header-footer", f"--print-to-pdf={paper}")
    assert paper.read_bytes().startswith(b"%PDF")
