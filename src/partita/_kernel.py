"""How loops are compiled: on first use, cached on disk beside the source, free of the interpreter lock."""

from numba import njit

kernel = njit(cache=True, nogil=True, error_model="numpy")
