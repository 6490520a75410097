"""How loops are compiled.

``kernel`` marks what Python calls: compiled on first use, cached on disk, free of the interpreter lock.
``inner`` marks what only kernels call: compiled as part of them, with no entry from Python. ``glue`` marks a
few lines that only join steps: they are copied into their caller, so that what they call is compiled once.

A first use waits for the compiler, so kernels are plain loops on preallocated arrays: each NumPy function,
fancy index or array expression inside one costs more compile time than a page of loops.
"""

from pathlib import Path

from numba import njit
from numba.core import cgutils
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.extending import intrinsic
from numba.np.arrayobj import make_array

COMPILED = ("models", "smc", "offline", "posterior", "losses")  # the folders with kernels in them


def _forget_stale_kernels(package: Path) -> None:
    """Remove cached kernels older than the newest source file that may be part of one.

    Numba compares a cached kernel with its own file only, and would go on using it after an edit to an inner
    function in another one.
    """
    sources = [
        *package.glob("*.py"),
        *(source for name in COMPILED for source in package.rglob(f"{name}/**/*.py")),
    ]
    newest = max(source.stat().st_mtime for source in sources)
    for index in package.rglob("__pycache__/*.nbi"):
        try:
            if index.stat().st_mtime < newest:
                index.unlink()
        except OSError:
            pass  # another process was faster, or the folder is not ours to change


_forget_stale_kernels(Path(__file__).parent.parent)


class LinkedCode(JITCodeLibrary):  # type: ignore[misc]
    """Code that is never run by itself, only linked into kernels, and optimised as part of those.

    Numba would optimise each function and make machine code of it together with all that it calls, at every
    level of nesting anew: half of the time that a first use waits.
    """

    def _optimize_final_module(self):
        """Leave it to the kernels."""

    def _finalize_final_module(self):
        """Make no machine code."""
        self._finalized = True

    def get_pointer_to_function(self, name):
        """There is no machine code."""
        return 0

    @property
    def codegen(self):
        """Whom Numba tells of the function's Python environment, which this code does without."""
        return NoEnvironment


class NoEnvironment:
    """Takes no notice."""

    @staticmethod
    def set_env(name, env):
        """Nothing to set."""


class InnerCompiler(CompilerBase):  # type: ignore[misc]
    """Numba's compiler with :class:`LinkedCode` for its result."""

    def define_pipelines(self):
        """The usual passes."""
        self.state.library = LinkedCode(self.state.targetctx.codegen(), self.state.func_id.func_qualname)
        passes = DefaultPassBuilder.define_nopython_pipeline(self.state)
        passes.finalize()
        return [passes]


kernel = njit(cache=True, nogil=True, error_model="numpy", no_cfunc_wrapper=True)
INNER = {
    "nogil": True,
    "error_model": "numpy",
    "no_cfunc_wrapper": True,
    "no_cpython_wrapper": True,
    "pipeline_class": InnerCompiler,
}
inner = njit(**INNER)
glue = njit(nogil=True, error_model="numpy", inline="always")


@intrinsic
def borrowed(typingctx, array):
    """The same array, which nobody counts references to: whoever calls must hold it.

    Every call that an array is passed to counts twice, atomically, which costs more than a look-up in it.
    """

    def codegen(context, builder, signature, arguments):
        view = make_array(array)(context, builder, value=arguments[0])
        view.meminfo = cgutils.get_null_value(view.meminfo.type)
        return view._getvalue()

    return array(array), codegen
