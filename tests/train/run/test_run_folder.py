"""The run folder replaces only run folders, and one run at a time holds it."""

import pytest

from distgnn.config import TrainConfig
from distgnn.errors import InputError
from distgnn.system.atomic import why_foreign
from distgnn.train.run import run_folder
from distgnn.train.run.run_folder import RunFolder, check_free, run_files

CONFIG = {"train": TrainConfig().as_dict()}


def test_only_run_folders_are_replaced(tmp_path):
    site = tmp_path / "site"
    site.mkdir()
    for text, why in (('baseURL = "https://example.org"\n', "is not one of ours"), ("[train\n", "cannot be read")):
        (site / "config.toml").write_text(text)
        with pytest.raises(InputError, match=rf"its config\.toml {why}\): it is left alone"):
            RunFolder(str(site), CONFIG, overwrite=True)
    (site / "config.toml").unlink()
    (site / "logs").mkdir()
    (site / "logs" / "visitors.log").write_text("precious")
    with pytest.raises(InputError, match=r"no config\.toml"):
        RunFolder(str(site), CONFIG, overwrite=True)
    assert (site / "logs" / "visitors.log").read_text() == "precious"


@pytest.mark.parametrize("file", ["thesis.tex", "logs/visitors.log", "checkpoint/photo.jpg", "seed-0/notes.md"])
def test_a_run_folder_with_a_foreign_file_stays(tmp_path, file):
    RunFolder(str(tmp_path / "run"), CONFIG).close()
    (tmp_path / "run" / file).parent.mkdir(exist_ok=True)
    (tmp_path / "run" / file).write_text("precious")
    with pytest.raises(InputError, match=f"{file} in it is not one of ours"):
        check_free(tmp_path / "run", overwrite=True)


def test_a_running_run_is_not_replaced(tmp_path):
    first = RunFolder(str(tmp_path / "run"), CONFIG)
    for options in ({"overwrite": True}, {"resume": True}):
        with pytest.raises(InputError, match="another run is writing"):
            RunFolder(str(tmp_path / "run"), CONFIG, **options)
    first.add_epoch({"epoch": 0})
    first.close()
    second = RunFolder(str(tmp_path / "run"), CONFIG, overwrite=True)
    assert (tmp_path / "run" / "metrics.jsonl").read_text() == ""
    with pytest.raises(InputError, match="another run is writing"):
        RunFolder(str(tmp_path / "run"), CONFIG, overwrite=True)
    second.close()


def test_one_of_several_runs_protects_the_folder_around_it(tmp_path):
    outer = RunFolder(str(tmp_path / "run"), CONFIG)
    outer.close()
    inner = RunFolder(str(tmp_path / "run" / "seed-0"), CONFIG)
    with pytest.raises(InputError, match="another run is writing"):
        RunFolder(str(tmp_path / "run"), CONFIG, overwrite=True)
    inner.close()
    RunFolder(str(tmp_path / "run"), CONFIG, overwrite=True).close()


def test_an_empty_folder_may_be_taken_and_a_path_that_is_no_text(tmp_path):
    (tmp_path / "run").mkdir()
    folder = RunFolder(str(tmp_path / "run"), CONFIG | {"data": {"parts": "caf\udce9"}})
    folder.close()
    assert '"caf?"' in (tmp_path / "run" / "config.toml").read_text()


def test_of_two_that_overwrite_at_once_one_gets_the_folder(tmp_path, monkeypatch):
    """The old one is locked until it is gone, and the new one before it has its name."""
    RunFolder(str(tmp_path / "run"), CONFIG).close()
    locked, lock = [], run_folder._locked
    monkeypatch.setattr(run_folder, "_locked", lambda folder: (locked.append(folder), lock(folder))[1])
    RunFolder(str(tmp_path / "run"), CONFIG, overwrite=True).close()
    assert locked[0] == tmp_path / "run" and len(locked) == 2 and not locked[1].exists()


def test_merged_parts_belong_to_a_run(tmp_path):
    """The launcher may have made them before there was a run folder, and they go with it."""
    part = tmp_path / "run" / "merged" / "parts-2" / "part-0"
    part.mkdir(parents=True)
    for file in (part / "global_ids.npy", part.parent / "partition.json"):
        file.touch()
    RunFolder(str(tmp_path / "run"), CONFIG).close()
    assert why_foreign(tmp_path / "run", run_files) is None
    (part / "notes.txt").touch()
    assert "notes.txt in it is not one of ours" in why_foreign(tmp_path / "run", run_files)
