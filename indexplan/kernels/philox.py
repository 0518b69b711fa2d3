"""Philox4x32-10, and the 64-bit numbers with which all kernels compute.

Philox and the multipliers are those of Salmon et al. 2011, "Parallel Random Numbers: As Easy as
1, 2, 3".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from indexplan.kernels.compiling import inlined

U64: TypeAlias = np.uint64

if TYPE_CHECKING:
    Four: TypeAlias = tuple[U64, U64, U64, U64]

# With a Python int, a uint64 becomes signed or a float in numba, so constants are uint64 too.
ZERO, ONE, TWO, HALF, TOP_BIT = U64(0), U64(1), U64(2), U64(32), U64(63)
LOW = U64(0xFFFFFFFF)
MULTIPLIER_0, MULTIPLIER_1 = U64(0xD2511F53), U64(0xCD9E8D57)  # Philox's, as are the next two
WEYL_0, WEYL_1 = U64(0x9E3779B9), U64(0xBB67AE85)


# A loop over lanes becomes vector instructions only if it is inlined there: 5 ns a counter instead
# of 11.
@inlined
def philox(c0: U64, c1: U64, c2: U64, c3: U64, k0: U64, k1: U64) -> Four:
    """Return the four words of a counter under a key, all below 2**32."""
    for _ in range(10):
        p, q = (c0 & LOW) * MULTIPLIER_0, (c2 & LOW) * MULTIPLIER_1  # the masks are for LLVM
        c0, c1, c2, c3 = (q >> HALF) ^ c1 ^ k0, q & LOW, (p >> HALF) ^ c3 ^ k1, p & LOW
        k0, k1 = (k0 + WEYL_0) & LOW, (k1 + WEYL_1) & LOW
    return c0, c1, c2, c3
