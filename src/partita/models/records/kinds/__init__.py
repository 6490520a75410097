"""Kinds of attributes, each in a file with its kernels, its learner and its name in a schema."""

from partita.models.records.kinds.attribute import Attribute
from partita.models.records.kinds.category import Category
from partita.models.records.kinds.column import Column, Noted
from partita.models.records.kinds.email import Email
from partita.models.records.kinds.long_text import LongText
from partita.models.records.kinds.number import Number
from partita.models.records.kinds.person_name import PersonName
from partita.models.records.kinds.phone import Phone
from partita.models.records.kinds.postal_code import PostalCode
from partita.models.records.kinds.text import Date, Text
from partita.models.records.kinds.url import Url
from partita.models.records.kinds.value import Value

__all__ = [
    "Attribute",
    "Category",
    "Column",
    "Date",
    "Email",
    "LongText",
    "Noted",
    "Number",
    "PersonName",
    "Phone",
    "PostalCode",
    "Text",
    "Url",
    "Value",
]
