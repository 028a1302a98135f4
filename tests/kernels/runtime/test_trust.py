"""Which folders of compiled kernels are read: those that nobody else can write."""

import os

import pytest

from distgnn.kernels.runtime import trust

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
        trust.doubt.cache_clear()
        return trust.doubt(str(folder), str(source))

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

    monkeypatch.setattr(trust.grp, "getgrgid", lambda _: Names)
    monkeypatch.setattr(trust.pwd, "getpwuid", lambda _: Names)
    assert doubt(0o775) is None
    Names.gr_mem = ("me", "you")
    assert "group" in doubt(0o775)


def test_a_folder_that_is_not_there(tmp_path):
    assert trust.doubt(str(tmp_path / "none"), __file__) is None
