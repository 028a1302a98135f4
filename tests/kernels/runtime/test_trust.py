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


def test_a_folder_of_ones_own(doubt):
    assert doubt(0o755) is None and doubt(0o700) is None


def test_a_folder_that_everybody_can_write(doubt):
    assert doubt(0o757) == doubt(0o1777) == "everybody can write there"


def test_a_folder_that_a_group_can_write(doubt):
    assert doubt(0o775, gid=OTHER) == f"group {OTHER} can write there"
    assert doubt(0o755, gid=OTHER) is None


def test_a_folder_of_somebody_else(doubt):
    assert doubt(0o755, uid=OTHER) == f"the folder belongs to user {OTHER}"


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
