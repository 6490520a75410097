"""How loops are compiled.

``kernel`` marks what Python calls: compiled on first use, cached on disk, free of the interpreter lock.
``inner`` marks what only kernels call: compiled as part of them, with no entry from Python. ``glue`` marks a
few lines that only join steps: they are copied into their caller, so that what they call is compiled once.

A first use waits for the compiler, so kernels are plain loops on preallocated arrays: each NumPy function,
fancy index or array expression inside one costs more compile time than a page of loops.
"""

from pathlib import Path

from numba import njit


def _forget_stale_kernels(package: Path) -> None:
    """Remove cached kernels older than the newest source file.

    Numba compares a cached kernel with its own file only, and would go on using it after an edit to an inner
    function in another one.
    """
    newest = max(source.stat().st_mtime for source in package.rglob("*.py"))
    for index in package.rglob("__pycache__/*.nbi"):
        try:
            if index.stat().st_mtime < newest:
                index.unlink()
        except OSError:
            pass  # another process was faster, or the folder is not ours to change


_forget_stale_kernels(Path(__file__).parent)

kernel = njit(cache=True, nogil=True, error_model="numpy", no_cfunc_wrapper=True)
inner = njit(nogil=True, error_model="numpy", no_cfunc_wrapper=True, no_cpython_wrapper=True)
glue = njit(nogil=True, error_model="numpy", inline="always")
