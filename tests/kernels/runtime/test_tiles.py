"""Registers of processors: what numba compiles for decides, and 64-bit Arm has its own whatever LLVM says."""

import platform
from pathlib import Path

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


@pytest.mark.parametrize(("level_1", "of_256_bytes"), [("32K\n", 20), ("48K\n", 64), ("", 64)])
def test_rows_under_way_fit_level_1(monkeypatch, level_1, of_256_bytes):
    monkeypatch.setattr(Path, "read_text", lambda self: level_1)
    monkeypatch.setattr(tiles, "cache_bytes", tiles.cache_bytes.__wrapped__)
    assert (tiles.arcs_ahead(4), tiles.arcs_ahead(256), tiles.arcs_ahead(4096)) == (128, of_256_bytes, 16)
    monkeypatch.setattr(tiles, "registers", lambda: (64, 16))
    assert tiles.sum_vectors(False) == tiles.sum_vectors(True) == (8 if level_1 == "32K\n" else None)
