"""Files of kept machine code that are damaged: the kernel is compiled again, once, and a line names the file.

Which folders of compiled kernels are read: those that nobody else can write.
"""

import os
from pathlib import Path

import pytest

from distgnn.kernels.runtime import kept_code
from distgnn.kernels.runtime.kept_code import DamagedError, KeptCode

from .fresh import ONE_KERNEL, start

KEY, CODE = (("float32",), ("x86",)), {"code": b"x" * 5000}


@pytest.fixture
def kept(tmp_path):
    found = KeptCode(tmp_path / "cache", "kernel-1", "stamp", __file__)
    found.save(KEY, CODE)
    return found


def give_away(file: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give files away")
    os.chown(file, 61234, -1)


def folder_in_its_place(file: Path) -> None:
    file.unlink()
    file.mkdir()


DAMAGE = {
    "empty": lambda file: file.write_bytes(b""),
    "cut": lambda file: file.write_bytes(file.read_bytes()[:-100]),
    "zeros": lambda file: file.write_bytes(bytes(file.stat().st_size)),
    "zeros at the end": lambda file: file.write_bytes(file.read_bytes()[:2000] + bytes(file.stat().st_size - 2000)),
    "garbage": lambda file: file.write_bytes(os.urandom(3000)),
    "one bit": lambda file: file.write_bytes(file.read_bytes()[:-1] + bytes([file.read_bytes()[-1] ^ 1])),
    "somebody else's": give_away,
    "writable by all": lambda file: file.chmod(0o666),
    "a folder": folder_in_its_place,
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_file_is_named_and_replaced(kept, damage):
    file = kept.file_of(KEY)
    damage(file)
    with pytest.raises(DamagedError, match=f"^{file} "):
        kept.load(KEY)
    if file.is_dir():
        return
    kept.save(KEY, CODE)
    assert kept.load(KEY) == CODE


def test_what_is_of_another_source_signature_or_version_is_not_used(kept, monkeypatch):
    other = KeptCode(kept.folder, kept.name, "another stamp", __file__)
    assert kept.load(KEY) == CODE and kept.load((("float64",), ("x86",))) is None and other.load(KEY) is None
    monkeypatch.setattr(kept_code, "VERSIONS", ("9", "9", "9"))
    assert kept.load(KEY) is None


def test_a_writer_that_fails_or_was_killed_leaves_the_old_file_and_nothing_else(kept, monkeypatch):
    (kept.folder / f"{kept.file_of(KEY).name}.abc.part").write_bytes(b"half")  # killed

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(kept_code.os, "replace", full)
    with pytest.raises(OSError, match="No space left"):
        kept.save(KEY, "new")
    assert list(kept.folder.iterdir()) == [kept.file_of(KEY)] and kept.load(KEY) == CODE


@pytest.mark.slow
def test_processes_that_find_a_damaged_file_together_compile_once_and_say_so_once(tmp_path):
    def run(count: int) -> list[tuple[str, str]]:
        started = [start(ONE_KERNEL, tmp_path) for _ in range(count)]
        return [process.communicate(timeout=900) for process in started]

    assert run(1) == [("1\n", "")]
    (file,) = tmp_path.rglob("*.nbc")
    file.write_bytes(file.read_bytes()[:500])
    found = sorted(run(3))
    assert [out for out, _ in found] == ["0\n", "0\n", "1\n"]
    said = "".join(err for _, err in found)
    assert said == f"distgnn: {file} is damaged (500 bytes): its kernel is compiled again\n"
    assert run(1) == [("0\n", "")]
    file.unlink()
    file.mkdir()  # neither read nor replaced: as on a full disk, the kernel is compiled and not kept
    [(out, said)] = run(1)
    assert out == "1\n" and said.count("\n") == 2 and "cannot be kept in" in said and str(file) in said, said


OTHER = 61234  # a user and a group that no machine has


@pytest.fixture
def doubt(tmp_path):
    source = tmp_path / "source.py"
    source.touch()
    folder = tmp_path / "cache"
    folder.mkdir()

    def ask(mode, uid=-1, gid=-1):
        if (uid, gid) != (-1, -1) and os.geteuid() != 0:
            pytest.skip("only root can give files away")
        os.chown(folder, uid, gid)
        folder.chmod(mode)
        kept_code.doubt.cache_clear()
        return kept_code.doubt(str(folder), str(source))

    return ask


EVERYBODY, GROUP = "everybody can write there", f"group {OTHER} can write there"


@pytest.mark.parametrize(
    ("mode", "owner", "reason"),
    [
        (0o755, {}, None),
        (0o700, {}, None),
        (0o757, {}, EVERYBODY),
        (0o1777, {}, EVERYBODY),
        (0o775, {"gid": OTHER}, GROUP),
        (0o755, {"gid": OTHER}, None),
        (0o755, {"uid": OTHER}, f"the folder belongs to user {OTHER}"),
    ],
)
def test_who_can_write(doubt, mode, owner, reason):
    assert doubt(mode, **owner) == reason


def test_a_group_of_one_is_its_owner(doubt, monkeypatch):
    class Names:
        gr_name = pw_name = "me"
        gr_mem = ()

    monkeypatch.setattr(kept_code.grp, "getgrgid", lambda _: Names)
    monkeypatch.setattr(kept_code.pwd, "getpwuid", lambda _: Names)
    assert doubt(0o775) is None
    Names.gr_mem = ("me", "you")
    assert "group" in doubt(0o775)


def test_a_folder_that_is_not_there(tmp_path):
    assert kept_code.doubt(str(tmp_path / "none"), __file__) is None
