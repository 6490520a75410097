"""Kinds of attributes, each in a file with its kernels, its learner and its name in a schema."""

from partita.models.records.kinds.attribute import Attribute
from partita.models.records.kinds.category import Category
from partita.models.records.kinds.number import Number
from partita.models.records.kinds.text import Date, Text
from partita.models.records.kinds.value import Value

__all__ = ["Attribute", "Category", "Date", "Number", "Text", "Value"]
