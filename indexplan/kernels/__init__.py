"""All of numba: the kernels of this library, and how they are compiled and kept."""
