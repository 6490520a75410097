"""A record model in words: of each attribute its kind, why, and what was learnt of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from partita.models.records.comparisons.family import SAME
from partita.models.records.comparisons.vocabulary import ComparedValues, equal_by_chance
from partita.models.records.kinds import Attribute
from partita.models.records.kinds.attribute import SILENT
from partita.models.records.nothing import USUAL

ALIKE_FROM = 3  # the level from which values are called alike
FEW = 5  # values of which nothing follows from all being different


@dataclass(frozen=True)
class DescribedAttribute:
    """What a model holds of an attribute; None is what it does not know.

    Attributes
    ----------
    name, kind : str
    why : str or None
        Why the kind was chosen, if it was inferred.
    mentioned : float or None
        The share of fragments that mention it.
    distinct : int or None
        How many different values it has.
    same, alike : float or None
        How often two values of an entity are the very same, or alike.
    same_by_chance, alike_by_chance : float or None
        And how often two of different entities are.
    weight : float or None
        What its evidence counts.
    remarks : tuple of str
        What to know beyond that.
    """

    name: str
    kind: str
    why: str | None = None
    mentioned: float | None = None
    distinct: int | None = None
    same: float | None = None
    alike: float | None = None
    same_by_chance: float | None = None
    alike_by_chance: float | None = None
    weight: float | None = None
    remarks: tuple[str, ...] = ()

    def lines(self) -> Iterator[str]:
        """What is known, in sentences."""
        if self.why is not None:
            yield f"because {self.why}"
        known = [] if self.mentioned is None else [f"mentioned by {share(self.mentioned)} of the fragments"]
        if self.distinct is not None:
            known.append(f"{self.distinct:,} distinct value{'s' * (self.distinct != 1)}")
        if known:
            yield ", ".join(known)
        if self.same is not None and self.same_by_chance is not None:
            alike = "" if self.alike is None else f", alike {share(self.alike)}"
            chance = "" if self.alike_by_chance is None else f", alike {share(self.alike_by_chance)}"
            yield f"values of an entity are the very same {share(self.same)}{alike}"
            yield f"those of two entities are the very same {share(self.same_by_chance)}{chance}"
        if self.weight == SILENT:
            why = "records that are alike in all else are in it as different as any, so it counts for nothing"
            yield f"weight {self.weight:.2f}: {why}"
        elif self.weight is not None:
            less = ", less than 1 as other attributes say part of the same" if self.weight < 0.995 else ""
            yield f"weight {self.weight:.2f}{less}"
        yield from self.remarks


@dataclass(frozen=True)
class Description:
    """A record model in words: printed as a text, and what it consists of.

    Attributes
    ----------
    attributes : tuple of DescribedAttribute
    size : float or None
        How many fragments an entity has, on average, if that was learnt.
    """

    attributes: tuple[DescribedAttribute, ...]
    size: float | None

    def to_json(self) -> dict[str, Any]:
        """As JSON can hold it."""
        return {
            "attributes": [asdict(one) | {"remarks": list(one.remarks)} for one in self.attributes],
            "size": self.size,
        }

    def __str__(self) -> str:
        blocks = ["\n    ".join([f"{one.name}: {one.kind}", *one.lines()]) for one in self.attributes]
        if self.size is not None:
            blocks.append(f"An entity has {self.size:.2f} fragments, on average.")
        else:
            blocks.append("Nothing has been learnt yet: fit_prior does.")
        return "\n".join(blocks)

    __repr__ = __str__


def described(model: Any) -> Description:
    """See :meth:`Record.describe`."""
    attributes = model.attributes or {}
    return Description(
        tuple(described_attribute(name, attribute, model.presence) for name, attribute in attributes.items()),
        model.size,
    )


def described_attribute(name: str, attribute: Attribute | None, presence: Any) -> DescribedAttribute:
    """What is known of an attribute, learnt or noted when its kind was inferred."""
    if attribute is None:
        return DescribedAttribute(name, "ignore", remarks=("it counts for nothing",))
    noted, counts = attribute.noted, attribute.corpus.counts
    mentioned = None if noted is None else noted.mentions / max(noted.fragments, 1)
    if presence is not None:
        mentioned = presence.get(name, 0.0)
    distinct = len(counts) if counts else None if noted is None else noted.distinct
    remarks = ["stands for all attributes that are not named here"] if name == "*" else []
    if distinct == 1:
        remarks.append("all values are the same: it says nothing until there is another one")
    elif noted is not None and noted.values == noted.distinct >= FEW:
        only = "only tells apart" if attribute.measure == SAME else "says something only by being alike"
        remarks.append(f"no value occurred twice among {noted.values:,}: it {only}")
    if noted is not None and noted.divided_by and not attribute.separator:
        remarks.append(
            f"texts look like lists: separator = {noted.divided_by!r} compares what is in them one by one"
        )
    if attribute.separator:
        remarks.append(f"texts are lists divided by {attribute.separator!r}, compared one by one")
    if found := [text for text in attribute.missing if text not in USUAL]:
        remarks.append(f"these stand for nothing: {', '.join(map(repr, found))}")
    known = dict.fromkeys(("same", "alike", "same_by_chance", "alike_by_chance", "weight"))
    return DescribedAttribute(
        name,
        attribute.kind,
        None if noted is None else noted.why,
        mentioned,
        distinct,
        remarks=tuple(remarks),
        **(learnt(attribute) if counts else known),
    )


def learnt(attribute: Attribute) -> dict[str, float | None]:
    """How often values of an entity, and those of two, agree; as the model compares them."""
    if attribute.family_class is not None:  # which a kernel of its own says
        return {"weight": attribute.weight}
    strangers = ComparedValues([attribute], np.ones((1, 4)), 1.0, 0.0).references(0)
    overall = attribute.by_chance
    if not overall:
        holders = np.array(list(attribute.corpus.counts.values()))
        shared = equal_by_chance(holders - 1.0, strangers.discount, strangers.entities)
        overall = (*strangers.overall[:-1].tolist(), float(np.average(shared, weights=holders)))
    found: dict[str, float | None] = {
        "same": attribute.agreement[-1],
        "same_by_chance": overall[-1],
        "weight": attribute.weight,
    }
    if attribute.measure != SAME:
        found["alike"] = float(sum(attribute.agreement[ALIKE_FROM:-1]))
        found["alike_by_chance"] = float(sum(overall[ALIKE_FROM:-1]))
    return found


def share(of: float) -> str:
    """A share as people write it, with as many digits as it takes to see how rare something is."""
    if of in (0.0, 1.0) or 0.01 <= of <= 0.99:
        return f"{100.0 * of:.0f} %"
    return ">99 %" if of > 0.99 else f"{100.0 * of:.1g} %" if of >= 1e-5 else "<0.001 %"
