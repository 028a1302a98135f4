"""Registers of processors: what numba compiles for decides, and 64-bit Arm has its own whatever LLVM says."""

import platform

import pytest
from numba.core import config

from distgnn.kernels.runtime import tiles


@pytest.mark.parametrize(
    ("machine", "features", "expected"),
    [
        ("x86_64", "+avx2,+avx512f", (64, 16)),
        ("x86_64", "+avx2,-avx512f", (32, 10)),
        ("x86_64", "+sse4.2", (16, 10)),
        ("aarch64", "", (16, 20)),
        ("aarch64", "+neon", (16, 20)),
        ("arm64", "", (16, 20)),
    ],
)
def test_registers(monkeypatch, machine, features, expected):
    monkeypatch.setattr(platform, "machine", lambda: machine)
    monkeypatch.setattr(config, "CPU_FEATURES", features)
    assert tiles.registers.__wrapped__() == expected


@pytest.mark.parametrize(
    ("features", "expected"), [("+avx512f,+avx512bf16", True), ("+avx512f,-avx512bf16", False), ("", False)]
)
def test_which_machines_round_to_bfloat16(monkeypatch, features, expected):
    monkeypatch.setattr(config, "CPU_FEATURES", features)
    assert tiles.narrows_bfloat16.__wrapped__() is expected
