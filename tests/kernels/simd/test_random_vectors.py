"""The generator of random bits gives its authors' numbers."""

from distgnn.kernels.simd import random_vectors


def test_philox_known_answers():
    """Salmon et al.'s test vectors (Random123, kat_vectors)."""
    zero = (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)
    ones = (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)
    assert random_vectors.philox_python((0, 0, 0, 0), (0, 0)) == zero
    assert random_vectors.philox_python((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2) == ones
