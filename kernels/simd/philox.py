"""Philox 4x32-10: random bits as a function of a counter (Salmon et al., SC 2011). No state, no order, no threads.

The bits of row `v`, column `c` of dropout site `s` in training step `t` are found in two steps:

    (k0, k1, stream, _) = philox(counter=(t low, t high, s, TAG), key=(seed low, seed high))     # once per call
    words               = philox(counter=(block, v low, v high, stream), key=(k0, k1))           # per 8 columns

Columns are taken in groups of 128. Inside group g, column r has lane r % 16, block 16 g + r % 16, and the 16-bit
half r // 16 of its block's four words (low half first). So 16 neighbouring columns are the same half of 16 blocks:
a vector kernel needs no shuffles. The layout is the same on every machine, whatever its vector width.
"""

import numpy as np

# The constants of the paper: the key grows by them (WEYL) from round to round, the counter is multiplied.
MULTIPLIER_0, MULTIPLIER_1 = 0xD2511F53, 0xCD9E8D57
WEYL_0, WEYL_1 = 0x9E3779B9, 0xBB67AE85
DROPOUT_TAG = 0x64726F70  # "drop"
# One draw is 16 blocks of four words: 64 words of 32 bits, or 128 numbers of 16. The width does not follow the
# machine's registers, or a mask would differ between machines.
GROUP = 128
LANES = 16


def philox_python(counter, key):
    """Ten rounds on four counter words with two key words, on Python integers or uint64 arrays."""
    (c0, c1, c2, c3), (k0, k1) = counter, key
    for _ in range(10):
        p0, p1 = MULTIPLIER_0 * c0, MULTIPLIER_1 * c2
        c0, c1, c2, c3 = (p1 >> 32) ^ c1 ^ k0, p1 & 0xFFFFFFFF, (p0 >> 32) ^ c3 ^ k1, p0 & 0xFFFFFFFF
        k0, k1 = (k0 + WEYL_0) & 0xFFFFFFFF, (k1 + WEYL_1) & 0xFFFFFFFF
    return c0, c1, c2, c3


def derive_key(seed, step, site, tag=DROPOUT_TAG):
    """(k0, k1, stream) of one training step and site, as uint32."""
    # Once per call, with Python integers: kernels get three words, not five, and two steps never share a key.
    seed, step = int(seed) & (2**64 - 1), int(step) & (2**64 - 1)
    counter = (step & 0xFFFFFFFF, step >> 32, int(site) & 0xFFFFFFFF, tag)
    k0, k1, stream, _ = philox_python(counter, (seed & 0xFFFFFFFF, seed >> 32))
    return np.uint32(k0), np.uint32(k1), np.uint32(stream)
