"""How loops are compiled.

``kernel`` marks what Python calls: compiled on first use, cached on disk, free of the interpreter lock.
``inner`` marks what only kernels call: compiled as part of them, with no entry from Python.

A first use waits for the compiler, so kernels are plain loops on preallocated arrays: each NumPy function,
fancy index or array expression inside one costs more compile time than a page of loops.
"""

from numba import njit

kernel = njit(cache=True, nogil=True, error_model="numpy", no_cfunc_wrapper=True)
inner = njit(nogil=True, error_model="numpy", no_cfunc_wrapper=True, no_cpython_wrapper=True)
glue = njit(nogil=True, error_model="numpy", inline="always")
