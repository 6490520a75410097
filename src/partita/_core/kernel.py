"""How loops are compiled, and cached on disk.

``kernel`` marks what Python calls: compiled on first use, cached on disk, free of the interpreter lock.
``inner`` marks what only kernels call: compiled as part of them, with no entry from Python. ``shared`` marks the few
inner functions that are large: they are cached as well, to be linked into the kernels of other models, and of other
processes. ``glue`` marks a few lines that only join steps: they are copied into their caller.

A first use waits for the compiler, and three quarters of that is Numba's own Python code, so kernels are plain loops
on preallocated arrays: each NumPy function, fancy index or array expression inside one costs more compile time than a
page of loops. Constants among the arguments of an inner function make a copy of it for each: pass ``np.int64(2)``.
"""

from __future__ import annotations

import gc
import hashlib
import inspect
import sys
import sysconfig
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from llvmlite import binding
from llvmlite.binding import ffi
from numba import njit, types
from numba.core import ir
from numba.core.caching import CompileResultCacheImpl, FunctionCache
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, CompilerBase, CompileResult
from numba.core.compiler_machinery import PassManager
from numba.core.targetconfig import TargetConfig
from numba.core.typed_passes import (
    AnnotateTypes,
    IRLegalization,
    NativeLowering,
    NoPythonBackend,
    NopythonRewrites,
    NopythonTypeInference,
    PreLowerStripPhis,
)
from numba.core.types.functions import BaseFunction
from numba.core.untyped_passes import (
    DeadBranchPrune,
    FixupArgs,
    GenericRewrites,
    InlineInlinables,
    IRProcessing,
    ReconstructSSA,
    TranslateByteCode,
)

PACKAGE = Path(__file__).parent.parent
# Folders of kernels and their parts:
COMPILED = ("_core", "learning", "models", "offline", "posterior", "smc")

INSTALLED = {"site-packages", "dist-packages"}  # folders of packages that do not change under a user's hands

# ---------------------------------------------------------------------- the cache


@cache
def contents(*files: Path) -> str:
    """A hash of files' names and contents, whatever their times."""
    state = hashlib.blake2b(digest_size=16)
    for file in files:
        state.update(file.name.encode() + b"\0" + file.read_bytes())
    return state.hexdigest()


@cache
def sources() -> str:
    """A hash of all that may be part of a kernel of ours.

    Numba compares a cached kernel with its own file only, and would go on using it after an edit to an inner
    function in another one.
    """
    return contents(*(file for name in COMPILED for file in sorted((PACKAGE / name).rglob("*.py"))))


def files_behind(where: type) -> list[Path]:
    """The files of a third party's class and of all modules that its module has imported, but for installed ones."""
    pending, known = [sys.modules.get(where.__module__)], {}
    while pending:
        module = pending.pop()
        file = getattr(module, "__file__", None)
        if (
            file is None
            or file in known
            or not INSTALLED.isdisjoint(Path(file).parts)
            or file.startswith((sysconfig.get_path("stdlib"), str(PACKAGE)))
        ):
            continue
        known[file] = Path(file)
        for value in vars(module).values():
            home = (
                value
                if inspect.ismodule(value)
                else sys.modules.get(getattr(value, "__module__", None) or "")
            )
            pending.append(home)
    return [known[file] for file in sorted(known)]


def contents_of_type(kind: Any) -> tuple[str, ...]:
    """For what a third party has registered: which class it is, and a hash of the file that it is from."""
    if isinstance(kind, types.BaseTuple):
        own = tuple(entry for item in kind.types for entry in contents_of_type(item))
        if isinstance(kind, types.BaseNamedTuple):
            where = kind.instance_class
            if not where.__module__.startswith("partita."):
                return (f"{where.__module__}.{where.__qualname__}", contents(*files_behind(where)), *own)
        return own
    return ()


class KernelCache(FunctionCache):  # type: ignore[misc]
    """Numba's cache, by the contents of the sources that may be part of a kernel.

    Keys are text, so that an index can be read where a third party's classes cannot be imported.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        own = Path(inspect.getfile(function))
        self._cache_file._source_stamp = sources() + ("" if PACKAGE in own.parents else contents(own))

    def _index_key(self, signature: Any, codegen: Any) -> Any:
        given = tuple(entry for kind in signature for entry in contents_of_type(kind))
        return str(signature), given, codegen.magic_tuple()

    def has(self, signature: Any, codegen: Any) -> bool:
        """Whether a kernel for arguments of these types is on disk."""
        return self._index_key(signature, codegen) in self._cache_file._load_index()


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

    def serialize_using_object_code(self):
        """What is kept on disk; all that it calls is in it.

        What it calls must stay as it is, ``linkonce_odr``: with local names the linker has been seen to take one
        kernel's function for another's.
        """
        return self.name, self._get_module_for_linking().as_bitcode()


class NoEnvironment:
    """Takes no notice."""

    @staticmethod
    def set_env(name, env):
        """Nothing to set."""

    @staticmethod
    def magic_tuple():
        """Bitcode is for this version of LLVM, whatever the processor."""
        return tuple(binding.llvm_version_info), binding.get_default_triple()


class LinkedCodeOnDisk(CompileResultCacheImpl):  # type: ignore[misc]
    """How :class:`LinkedCode` is read again."""

    def rebuild(self, target_context, payload):
        """The compiled function, as if it had been compiled here."""
        return CompileResult._rebuild(Reader(target_context), *payload)


class Reader:
    """Numba's target, which reads :class:`LinkedCode`."""

    def __init__(self, target):
        self.target = target

    def __getattr__(self, name):
        return getattr(self.target, name)

    def codegen(self):
        """Itself, for :meth:`unserialize_library`."""
        return self

    def unserialize_library(self, data):
        """The code, to be linked."""
        name, bitcode = data
        library = LinkedCode(self.target.codegen(), name)
        library._final_module = library._shared_module = binding.parse_bitcode(bitcode)
        library._finalized = True
        return library


class LinkedCodeCache(KernelCache):
    """The cache with :class:`LinkedCode` in it."""

    _impl_class = LinkedCodeOnDisk

    def _index_key(self, signature: Any, codegen: Any) -> Any:
        return super()._index_key(signature, NoEnvironment)


# ---------------------------------------------------------------------- the compiler

PASSES = (  # all of Numba's, but those for closures, ``with``, ``literally`` and the like
    TranslateByteCode,
    FixupArgs,
    IRProcessing,
    GenericRewrites,
    InlineInlinables,
    ReconstructSSA,
    DeadBranchPrune,
    NopythonTypeInference,
    PreLowerStripPhis,
    NopythonRewrites,
    IRLegalization,
    AnnotateTypes,
    NativeLowering,
    NoPythonBackend,
)


class InnerCompiler(CompilerBase):  # type: ignore[misc]
    """Numba's compiler with :class:`LinkedCode` for its result."""

    def define_pipelines(self):
        """The passes that plain loops need."""
        self.state.library = LinkedCode(self.state.targetctx.codegen(), self.state.func_id.func_qualname)
        passes = PassManager("inner")
        for step in PASSES:
            passes.add_pass(step, step.__name__)
        passes.finalize()
        return [passes]


class KernelCompiler(Compiler):  # type: ignore[misc]
    """Numba's compiler, in a hurry."""

    def compile_extra(self, func):
        """Compile with what Numba computes again and again remembered."""
        with hurrying():
            return super().compile_extra(func)


CALLS: dict[
    Any, Any
] = {}  # what has been found out about calls of Numba's own functions, by function and types
PLAIN = types.Number | types.Boolean | types.Array | types.BaseTuple  # types whose calls are found out once


@contextmanager
def hurrying() -> Iterator[None]:
    """While compiling, spare what Numba does for nothing; the code that comes out is the same.

    Its million small objects are looked through by the garbage collector again and again. The options of a function
    are hashed, by their names alone, whenever it is looked up, and compared by asking for each. How to add two numbers
    is found out each time. The variables of an instruction are gathered in lists of lists. And whoever may be timing
    is told whenever LLVM is called.
    """
    collecting = gc.isenabled()
    hash_of, equal, call_type = TargetConfig.__hash__, TargetConfig.__eq__, BaseFunction.get_call_type
    hashes: dict[type, int] = {}

    def quick_hash(self: Any) -> int:
        kind = type(self)
        if kind not in hashes:
            hashes[kind] = hash_of(self)
        return hashes[kind]

    def quick_equal(self: Any, other: Any) -> Any:
        return (
            self is other
            or (type(self) is type(other) and self._values == other._values)
            or equal(self, other)
        )

    def quick_call_type(self: Any, context: Any, args: Any, kws: Any) -> Any:
        if kws or not all(isinstance(kind, PLAIN) for kind in args):
            return call_type(self, context, args, kws)
        key = self, args
        if key not in CALLS:
            CALLS[key] = call_type(self, context, args, kws)
        return CALLS[key]

    def quick_variables(self: Any) -> list[Any]:
        return variables([], self.__dict__)

    def quick_call(self: Any, *args: Any) -> Any:
        with self._lock._lock:
            return self._cfn(*args)

    quick = (
        (TargetConfig, "__hash__", quick_hash),
        (TargetConfig, "__eq__", quick_equal),
        (BaseFunction, "get_call_type", quick_call_type),
        (ir.Stmt, "list_vars", quick_variables),
        (ffi._lib_fn_wrapper, "__call__", quick_call),
    )
    before = [vars(kind)[name] for kind, name, _ in quick]
    gc.disable()
    for kind, name, function in quick:
        setattr(kind, name, function)
    try:
        yield
    finally:
        for (kind, name, _), function in zip(quick, before, strict=True):
            setattr(kind, name, function)
        if collecting:
            gc.enable()


def variables(found: list[Any], value: Any) -> list[Any]:
    """All variables in part of an instruction of Numba's, in order."""
    kind = type(value)
    if kind is ir.Var:
        found.append(value)
    elif kind is dict:
        for each in value.values():
            variables(found, each)
    elif kind is list or kind is tuple:
        for each in value:
            variables(found, each)
    elif kind is ir.Expr:
        variables(found, value._kws)
    elif isinstance(value, ir.Inst):
        found.extend(value.list_vars())
    return found


INNER = {
    "nogil": True,
    "error_model": "numpy",
    "no_cfunc_wrapper": True,
    "no_cpython_wrapper": True,
    "pipeline_class": InnerCompiler,
}
inner = njit(**INNER)
glue = njit(nogil=True, error_model="numpy", inline="always")
_compiled = njit(nogil=True, error_model="numpy", no_cfunc_wrapper=True, pipeline_class=KernelCompiler)


def kernel(function: Callable[..., Any]) -> Any:
    """What Python calls."""
    dispatcher = _compiled(function)
    dispatcher._cache = KernelCache(function)
    return dispatcher


def shared(function: Callable[..., Any]) -> Any:
    """An inner function that is cached on disk as well."""
    dispatcher = inner(function)
    dispatcher._cache = LinkedCodeCache(function)
    return dispatcher


def is_cached(dispatcher: Any, signature: tuple[Any, ...]) -> bool:
    """Whether a kernel for arguments of these types is on disk."""
    return bool(dispatcher._cache.has(signature, dispatcher.targetctx.codegen()))
