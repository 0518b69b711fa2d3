"""The numba kernels of this library, and how they are compiled and cached."""
