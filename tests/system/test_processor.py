"""The name of a processor, from what Linux says of it; the cores of this process, by affinity and quota."""

import os

import pytest

from distgnn.system import processor
from distgnn.system.processor import describe


@pytest.mark.parametrize(
    "vendor, family, model, name",
    [
        ("AuthenticAMD", 25, 17, "A (Zen 4)"),
        ("AuthenticAMD", 25, 1, "A (Zen 3)"),
        ("AuthenticAMD", 23, 49, "A (Zen 2)"),
        ("AuthenticAMD", 26, 2, "A (Zen 5)"),
        ("AuthenticAMD", 99, 2, "A"),
        ("GenuineIntel", 6, 143, "A"),
    ],
)
def test_the_generation_of_a_processor_is_named(vendor, family, model, name):
    facts = f"processor\t: 0\nvendor_id\t: {vendor}\ncpu family\t: {family}\nmodel\t\t: {model}\nmodel name\t: A\n"
    assert describe(f"{facts}\n{facts.replace(': A', ': B')}") == name


@pytest.mark.parametrize(
    "maker, part, name",
    [
        ("0x41", "0xd40", "Neoverse V1"),
        ("0x41", "0xd08", "Arm, maker 0x41, part 0xd08"),
        ("0xc0", "0xd40", "Arm, maker 0xc0, part 0xd40"),
    ],
)
def test_a_processor_of_arm_is_told_from_another(maker, part, name):
    facts = (
        f"processor\t: 0\nFeatures\t: fp asimd\nCPU implementer\t: {maker}\nCPU variant\t: 0x1\nCPU part\t: {part}\n"
    )
    assert describe(f"{facts}\n{facts}") == name
    assert describe("processor\t: 0\nFeatures\t: fp asimd\n") == ""


def test_threads_share_the_cores_this_process_may_use(monkeypatch):
    for name in ("DISTGNN_NUM_THREADS", "OMP_NUM_THREADS"):  # a command with --threads leaves it behind
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(7)))
    monkeypatch.setattr(processor, "core_quota", lambda: 1000.0)
    assert [processor.threads_per_rank(ranks) for ranks in (1, 2, 4, 7, 8)] == [7, 3, 1, 1, 1]
    monkeypatch.setattr(processor, "core_quota", lambda: 2.5)
    assert processor.available_cores() == 2
    monkeypatch.setattr(processor, "core_quota", lambda: 0.5)
    assert processor.available_cores() == 1


V1 = ("cpu.cfs_quota_us", "cpu.cfs_period_us")
QUOTAS = {
    "version 2, fractional": ("0::/a/b\n", {"a/cpu.max": "250000 100000", "a/b/cpu.max": "max 100000"}, 2.5),
    "version 2, half a core": ("0::/\n", {"cpu.max": "50000 100000"}, 0.5),
    "version 1": (
        "5:memory:/x\n4:cpu,cpuacct:/docker/1\n",
        {f"cpu,cpuacct/docker/1/{name}": value for name, value in zip(V1, ("150000", "100000"), strict=True)},
        1.5,
    ),
    "version 1 in a container, names the other way round": (
        "4:cpuacct,cpu:/docker/1\n0::/\n",
        {f"cpu,cpuacct/{name}": value for name, value in zip(V1, ("300000", "100000"), strict=True)},
        3.0,
    ),
    "version 1 without a limit": ("4:cpu:/\n", {"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, None),
    "damaged": ("no group\n0::/\n", {"cpu.max": "many"}, None),
}


@pytest.mark.parametrize(("groups", "files", "quota"), QUOTAS.values(), ids=QUOTAS)
def test_quotas_of_both_versions_of_control_groups(tmp_path, groups, files, quota):
    (tmp_path / "cgroup").write_text(groups)
    for name, text in files.items():
        (tmp_path / "fs" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "fs" / name).write_text(f"{text}\n")
    found = processor.core_quota(str(tmp_path / "cgroup"), str(tmp_path / "fs"))
    assert found == quota if quota is not None else found > 10**6
