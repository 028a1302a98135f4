"""Vector registers from numba: LLVM intrinsics, vector arithmetic, counter-based random numbers."""
