"""What is installed is what stands here, under the one name `distgnn`, and nothing of anybody else's is touched."""

import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[2]
MAPPED = ("partition", "kernels", "datasets")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PACKAGES = PROJECT["tool"]["setuptools"]["packages"]


def package_of(folder: Path) -> str:
    name = ".".join(folder.relative_to(ROOT).parts)
    return f"distgnn.{name}" if name.split(".")[0] in MAPPED else name


def source_files() -> list[Path]:
    return [path for folder in ("distgnn", *MAPPED) for path in (ROOT / folder).rglob("*.py")]


def run(*command: object, cwd: Path | None = None) -> str:
    answer = subprocess.run(
        [str(word) for word in command], cwd=cwd, capture_output=True, text=True, timeout=900, check=False
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr
    return answer.stdout


def test_the_package_list_is_the_tree():
    """Extras are found, not listed: each can be deleted."""
    folders = {package_of(path.parent) for path in source_files()}
    assert sorted(PACKAGES) == sorted(name for name in folders if not name.startswith("distgnn.extras."))


def test_every_folder_with_modules_is_a_package():
    assert [path.parent for path in source_files() if not (path.parent / "__init__.py").is_file()] == []


def test_the_mapped_folders_are_named_by_hand():
    assert PROJECT["tool"]["setuptools"]["package-dir"] == {
        "distgnn": "distgnn",
        **{f"distgnn.{name}": name for name in MAPPED},
    }


def test_all_is_every_extra_but_docs():
    """`make demo` and `make test` install "all"; the site's generator is some thirty packages that neither needs."""
    extras = PROJECT["project"]["optional-dependencies"]
    wanted = [name for name in extras if name not in ("all", "docs")]
    assert extras["all"] == [f"distgnn[{','.join(wanted)}]"]


@pytest.mark.parametrize("name", MAPPED)
def test_a_folder_refuses_to_be_imported_by_its_bare_name(name):
    source = f"import sys; sys.path.insert(0, {str(ROOT)!r}); import {name}"
    answer = subprocess.run([sys.executable, "-I", "-c", source], capture_output=True, text=True, check=False)
    assert answer.returncode == 1
    assert f"this folder is the package distgnn.{name}: import that name" in answer.stderr


def test_a_checkout_works_without_being_installed(tmp_path):
    (tmp_path / "link").symlink_to(ROOT)  # another path than the one this environment knows
    source = (
        f"import sys; sys.path.insert(0, {str(tmp_path / 'link')!r}); import distgnn.kernels as k; print(k.__file__)"
    )
    found = Path(run(sys.executable, "-I", "-c", source, cwd=tmp_path).strip())
    assert found == ROOT / "kernels" / "__init__.py"


# Built once, from a copy: a build writes into the folder it builds.


@pytest.fixture(scope="module")
def copy(tmp_path_factory) -> Path:
    """The files of the checkout that a build needs."""
    copied = tmp_path_factory.mktemp("copy") / "distgnn"
    ignore = shutil.ignore_patterns("__pycache__", "*.egg-info")
    for folder in ("distgnn", *MAPPED, "tests"):
        shutil.copytree(ROOT / folder, copied / folder, ignore=ignore)
    for name in ("pyproject.toml", "README.md", "LICENSE", "MANIFEST.in", "CHANGELOG.md", "Makefile"):
        shutil.copy(ROOT / name, copied / name)
    return copied


@pytest.fixture(scope="module")
def wheel(copy) -> Path:
    """The wheel, built with the setuptools of this environment: nothing is downloaded."""
    return build_wheel(copy, copy.parent / "wheel")


def build_wheel(source: Path, out: Path) -> Path:
    options = ("-qq", "--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", out)
    run(sys.executable, "-m", "pip", "wheel", *options, source, cwd=out.parent)
    return next(out.glob("*.whl"))


def names_in(wheel: Path) -> set[str]:
    return set(zipfile.ZipFile(wheel).namelist())


@pytest.mark.slow
def test_the_wheel_holds_every_module_and_nothing_at_the_top_but_distgnn(wheel):
    names = names_in(wheel)
    assert {name.split("/")[0] for name in names} == {"distgnn", f"distgnn-{PROJECT['project']['version']}.dist-info"}
    expected = {f"{package_of(path.parent).replace('.', '/')}/{path.name}" for path in source_files()}
    assert {name for name in names if name.endswith(".py")} == expected
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert {"distgnn/py.typed", "distgnn/interop/tried.json"} <= set(names)


@pytest.mark.slow
def test_the_wheel_says_what_it_needs(wheel):
    archive = zipfile.ZipFile(wheel)
    read = {Path(name).name: archive.read(name).decode() for name in archive.namelist() if ".dist-info/" in name}
    assert "distgnn = distgnn.cli:main" in read["entry_points.txt"]
    for extra in PROJECT["project"]["optional-dependencies"]:
        assert f"Provides-Extra: {extra}" in read["METADATA"]
    assert 'Requires-Dist: mpich>=4.2; extra == "mpich"' in read["METADATA"]


@pytest.mark.slow
def test_the_installed_package_finds_its_own_parts(wheel, tmp_path):
    site = tmp_path / "site"
    site.mkdir()
    zipfile.ZipFile(wheel).extractall(site)
    (site / "datasets").mkdir()
    (site / "datasets" / "__init__.py").write_text("whose = 'somebody else'\n")
    source = (
        f"import sys; sys.path.insert(0, {str(site)!r})\n"
        "import distgnn, datasets, distgnn.kernels, distgnn.datasets\n"
        "print(datasets.whose, *distgnn.__path__, distgnn.kernels.__file__, distgnn.datasets.__file__, sep='\\n')"
    )
    installed = site / "distgnn"
    assert run(sys.executable, "-I", "-c", source, cwd=tmp_path).splitlines() == [
        "somebody else",
        *map(str, [installed, installed / "kernels" / "__init__.py", installed / "datasets" / "__init__.py"]),
    ]


@pytest.mark.slow
def test_the_source_archive_has_all_that_the_wheel_has_and_the_tests(copy, wheel, tmp_path):
    source = f"from setuptools.build_meta import build_sdist; build_sdist({str(tmp_path)!r})"
    run(sys.executable, "-c", source, cwd=copy)
    with tarfile.open(next(tmp_path.glob("*.tar.gz"))) as archive:
        held = {name.partition("/")[2] for name in archive.getnames()}
    mapped = re.compile(f"^distgnn/(?=({'|'.join(MAPPED)})/)")
    assert {mapped.sub("", name) for name in names_in(wheel) if ".dist-info/" not in name} <= held
    assert {"pyproject.toml", "Makefile", "CHANGELOG.md", "tests/harness/mpi_job.py"} <= held
