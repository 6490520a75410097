"""Named tuples of arrays that compiled functions pass to one another at no cost.

Numba counts references to every array of a tuple whenever a function is called with it, atomically, and copies the
tuple: of a family of twenty arrays that takes longer than most of what is done with it. A *lent* tuple is a pointer to
it and nobody counts: whoever has lent it holds it until all calls have returned. Its arrays are lent as well, and so is
a struct in it, and the arrays of that. They are read, written and passed on, but not kept.
"""

from __future__ import annotations

from typing import Any

from numba import types
from numba.core import cgutils
from numba.core.datamodel.models import ArrayModel, PrimitiveModel, StructModel
from numba.core.imputils import impl_ret_borrowed, lower_cast, lower_getattr_generic, lower_setattr_generic
from numba.core.typing.templates import AttributeTemplate
from numba.experimental.structref import _Utils
from numba.extending import infer_getattr, intrinsic, register_model


class LentArray(types.Array):  # type: ignore[misc]
    """Numba's type of an array that nobody counts references to."""

    def __init__(self, array: Any) -> None:
        super().__init__(
            array.dtype, array.ndim, array.layout, not array.mutable, f"lent {array}", array.aligned
        )


class LentStruct(types.Type):  # type: ignore[misc]
    """Numba's type of a struct that nobody counts references to."""

    def __init__(self, lender: Any) -> None:
        self.lender = lender
        super().__init__(f"lent {lender}")


class LentTuple(types.Type):  # type: ignore[misc]
    """Numba's type of a pointer to a named tuple."""

    def __init__(self, lender: Any) -> None:
        self.lender = lender
        super().__init__(f"lent {lender}")


def lent_type(kind: Any) -> Any:
    """What is lent of an array or a struct; what is lent already, numbers and the like are as they are."""
    if isinstance(kind, types.Array):
        return kind if isinstance(kind, LentArray) else LentArray(kind)
    return LentStruct(kind) if isinstance(kind, types.StructRef) else kind


# ---------------------------------------------------------------------- what they are in machine code


@register_model(LentArray)
class LentArrayModel(ArrayModel):  # type: ignore[misc]
    """The same as an array's, but that its owner is any pointer."""

    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind)
        members = [("meminfo", types.voidptr), *zip(self._fields[1:], self._members[1:], strict=True)]
        StructModel.__init__(self, manager, kind, members)


@register_model(LentStruct)
class LentStructModel(StructModel):  # type: ignore[misc]
    """The same as a struct's, but that its owner is any pointer."""

    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, [("meminfo", types.voidptr)])


@register_model(LentTuple)
class LentTupleModel(PrimitiveModel):  # type: ignore[misc]
    """A pointer."""

    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, manager.lookup(kind.lender).get_value_type().as_pointer())


@intrinsic
def lent(typingctx, owned):
    """A named tuple, an array or a struct, lent."""
    if isinstance(owned, types.BaseNamedTuple):
        return LentTuple(owned)(owned), _pointer_to
    return lent_type(owned)(owned), _as_it_is


def _pointer_to(context, builder, signature, arguments):
    return cgutils.alloca_once_value(builder, arguments[0])


def _as_it_is(context, builder, signature, arguments):
    return arguments[0]


# ---------------------------------------------------------------------- their fields


@infer_getattr
class FieldsOfTuple(AttributeTemplate):  # type: ignore[misc]
    """Types of a lent tuple's fields."""

    key = LentTuple

    def generic_resolve(self, kind, name):
        """The type of a field."""
        return lent_type(kind.lender.types[kind.lender.fields.index(name)])


@infer_getattr
class FieldsOfStruct(AttributeTemplate):  # type: ignore[misc]
    """Types of a lent struct's fields."""

    key = LentStruct

    def generic_resolve(self, kind, name):
        """The type of a field."""
        return lent_type(kind.lender.field_dict[name])


@lower_getattr_generic(LentTuple)
def _field_of_tuple(context, builder, kind, value, name):
    place = kind.lender.fields.index(name)
    field = builder.load(cgutils.gep_inbounds(builder, value, 0, place))
    return _passed_on(context, builder, kind.lender.types[place], field)


@lower_getattr_generic(LentStruct)
def _field_of_struct(context, builder, kind, value, name):
    field = getattr(_Utils(context, builder, kind.lender).get_data_struct(value), name)
    return _passed_on(context, builder, kind.lender.field_dict[name], field)


def _passed_on(context, builder, kind, field):
    """A field: one that is not lent is counted."""
    return field if lent_type(kind) != kind else impl_ret_borrowed(context, builder, kind, field)


@lower_cast(types.Array, LentArray)
def _to_be_set(context, builder, given, wanted, value):
    return value


@lower_setattr_generic(LentStruct)
def _set_field(context, builder, signature, arguments, name):
    """The struct owns what it is given, and lets go of what it had."""
    lender = signature.args[0].lender
    fields, kind = _Utils(context, builder, lender).get_data_struct(arguments[0]), lender.field_dict[name]
    before = getattr(fields, name)
    context.nrt.incref(builder, kind, arguments[1])
    setattr(fields, name, arguments[1])
    context.nrt.decref(builder, kind, before)
