"""Records: what fragments say of an entity, attribute by attribute (DESIGN, section 3)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import gammaln

from partita._core.collecting import uncollected
from partita._core.typing import Array, Floats, Integers
from partita.models import registry
from partita.models.records.comparisons import KERNELS, ComparisonFamily
from partita.models.records.comparisons.family import CROWDING, LINKED, SHARPNESS, UNHEARD
from partita.models.records.comparisons.vocabulary import ComparedValues, Length, Values
from partita.models.records.fragments import ReadFragment, check_fragments, checked
from partita.models.records.kinds import Attribute
from partita.models.records.named_by import check_named_by
from partita.models.records.tables import WIDTH
from partita.models.records.text_model import TextModel
from partita.models.registry import register

if TYPE_CHECKING:
    from partita.models.records.describing import Description

OTHER = "*"  # the attribute that stands for those not in the schema
NEVER = 1e-3  # the share of fragments that mention what none has mentioned yet


COLUMN = 0.5  # of the fragments mention an attribute for it to be a column; else it is a fact
LEAST_COLUMNS = 0.5  # that are counted where there is none
ALONE = 1.0  # q of a single attribute: what two of something cost, the Dirichlet process gives
GROWTH = 0.65  # of q, the power of how many columns there are


@register
class Record(TextModel):
    """A product of attribute models: the likelihood of what fragments say of one entity.

    A fragment is a mapping from attribute to a value or a list of values. Given the entity its attributes are
    independent, and an absent one costs nothing but what its absence says of the entity's kind.

    Parameters
    ----------
    attributes : mapping from name to Text, Category, Value, Number, Date, … or None
        None has an attribute ignored. The name "*" stands for all that are not named; without it they are
        refused.
    rate : float
        Prior number of fragments behind how often an entity mentions each attribute; 0 switches off that
        which attributes are mentioned is evidence. ``fit_prior`` learns it unless it is 0.
    presence : mapping from name to float, optional
        The share of fragments that mention each attribute. ``fit_prior`` counts them.
    types : list of (weight, mapping from name to float), optional
        Kinds of entities: how frequent each is, and the share of its fragments that mention each attribute.
        ``fit_prior`` finds them; None has all entities be of one type, as ``presence`` says.
    size : float, optional
        How many fragments an entity has, on average; what ``alpha="auto"`` expects. ``fit_prior`` learns it.
    name : list of str, optional
        The attributes that make an entity's name together, in a knowledge base; it chooses them otherwise.

    Examples
    --------
    >>> import partita as pt
    >>> fragments = [{"name": "Ada Lovelace", "born": "1815-12-10"}, {"name": ["Babbage", "Charles Babbage"]},
    ...              {"name": "Ada Lovelace", "born": 1815}, {"name": "Charles Babbage", "born": "1791-12-26"},
    ...              {"name": "Charles Babage", "born": "1791-12-26"}]
    >>> model = pt.Record({"name": pt.Text(), "born": pt.Date()}).fit_prior(fragments)
    >>> pt.SplitSMC(model, alpha=1.0).fit_predict(fragments)
    array([0, 1, 0, 1, 1])
    """

    _vocabulary: ComparedValues
    family_class = ComparisonFamily
    kernels = KERNELS
    keeps_sums = True

    def __init__(
        self,
        attributes: Mapping[str, Attribute | None] | None = None,
        rate: float = 2.0,
        presence: Mapping[str, float] | None = None,
        types: Sequence[tuple[float, Mapping[str, float]]] | None = None,
        size: float | None = None,
        name: Sequence[str] | None = None,
    ) -> None:
        self.attributes = attributes
        self.rate = rate
        self.presence = presence
        self.types = types
        self.size = size
        self.name = name

    # ------------------------------------------------------------------ schema

    @classmethod
    def infer(cls, fragments: Any) -> Record:
        """A schema that suits the fragments; nothing is fitted yet."""
        from partita.models.records.schema import inferred

        return cls(inferred(check_fragments(fragments)))

    def to_toml(self) -> str:
        """The schema as TOML, to be edited and read again with :meth:`from_toml`."""
        from partita.models.records.schema import to_toml

        return to_toml(self)

    @classmethod
    def from_toml(cls, text: str | Path) -> Record:
        """The schema that a TOML document, or the file at a path, describes; nothing is fitted yet."""
        from partita.models.records.schema import from_toml

        return from_toml(cls, text)

    def to_json(self) -> dict[str, Any]:
        """Everything that is fitted, as JSON can hold it."""
        from partita.models.records.schema import to_json

        return to_json(self)

    @classmethod
    def from_json(cls, contents: dict[str, Any]) -> Record:
        """The model that :meth:`to_json` describes."""
        from partita.models.records.schema import from_json

        return from_json(cls, contents)

    def describe(self) -> Description:
        """What the model holds of each attribute, in words: its kind and why, its values, what was learnt of it.

        Returns
        -------
        Description
            Print it, or look at its ``attributes``.

        Examples
        --------
        >>> import partita as pt
        >>> said = [{"name": "Ada Lovelace", "born": "1815-12-10"}, {"name": "Ada King", "born": "10/12/1815"}]
        >>> pt.Record.infer(said).describe()
        name: text
            because the values are of no other kind
            mentioned by 100 % of the fragments, 2 distinct values
        born: date
            because all 2 values are dates
            mentioned by 100 % of the fragments, 2 distinct values
        *: category
            stands for all attributes that are not named here
        Nothing has been learnt yet: fit_prior does.
        """
        from partita.models.records.describing import described

        return described(self)

    # ------------------------------------------------------------------ learning

    def fit_prior(
        self,
        X: Any,
        labels: Array | None = None,
        pairs: Iterable[tuple[int, int, bool]] | None = None,
        *,
        progress: Callable[[int, int], object] | None = None,
    ) -> Record:
        """Frequencies and hyperparameters by empirical Bayes; whatever is known of the fragments helps.

        Clustering a sample and learning from its clusters take turns: in how many clusters each value occurs, how
        much attributes vary within clusters. What is known holds for these clusters, and half of the sample is given to
        it where there is more of it than that. If all labels are known, one pass of counting does.

        Parameters
        ----------
        X : list of mappings
            Fragments, of which a sample of some thousand is clustered to learn from.
        labels : array, optional
            True clusters. −1, as in scikit-learn, None or NaN where it is not known.
        pairs : iterable of (i, j, same), optional
            Of rows of ``X``, whether they are of one entity: True or False.
        progress : callable, optional
            Called now and then with how many rows have been clustered, over all turns, and how many at most will be.

        Returns
        -------
        Record
            A new model; this one is left as it is.

        Raises
        ------
        ValueError
            If rows are said to be of one entity and of different ones; it names them.

        Examples
        --------
        >>> import partita as pt
        >>> fragments = [{"name": f"{'Dr ' * (k % 2)}person {k // 2}"} for k in range(40)]
        >>> schema = pt.Record({"name": pt.Text()})
        >>> round(schema.fit_prior(fragments).size)
        1
        >>> round(schema.fit_prior(fragments, pairs=[(k, k + 1, True) for k in range(0, 40, 2)]).size)
        2
        """
        given = {"pairs": pairs, "progress": progress}
        options = {name: value for name, value in given.items() if value is not None}
        fitted: Record = registry.taught(self, X, labels, **options)
        fitted.name = self.name
        return fitted

    # ------------------------------------------------------------------ for the samplers

    def check(self, n_features: int) -> None:
        names, models = self._modelled()
        for name, model in zip(names, models, strict=True):
            model.check(name)
        check_named_by(self.name, self.attributes or {})
        if not (isinstance(self.rate, int | float) and 0.0 <= self.rate < np.inf):
            raise ValueError(f"rate must be a number of at least 0, got {self.rate!r}")
        if self.size is not None and not (isinstance(self.size, int | float) and 1.0 <= self.size < np.inf):
            raise ValueError(f"size must be a number of at least 1, got {self.size!r}")
        self.numbers = {name: number for number, name in enumerate(names)}
        self._models = models
        self._vocabulary = ComparedValues(
            models, self._expected(names), self._sharpness(names, models), self._crowding
        )

    @property
    def expected_size(self) -> float | None:
        return self.size

    @property
    def size_belief(self) -> float:
        # Where one thing alone is said, α is the odds that were learnt, and the size is what makes it that.
        return 1.0 if self._linked or len(self._modelled()[0]) == 1 else super().size_belief

    @property
    def _linked(self) -> bool:
        """Whether records say one thing alone, so that they are compared by average linkage."""
        return any(model is not None and model.by_chance for model in (self.attributes or {}).values())

    @property
    def _crowding(self) -> float:
        """κ of the kernels: the fewer fragments entities have, the less their numbers are spread."""
        return 1.0 if self._linked else max(CROWDING, 1.0 / (self.size or np.inf))

    def _sharpness(self, names: list[str], models: list[Attribute]) -> float:
        """q of the kernels: an entity that has two of something has two of much, and that is to cost once.

        So it grows with the number of columns, each by its weight; what few fragments mention is no column.
        """
        if self._linked:
            return LINKED
        if len(models) - (OTHER in names and nobody_says_other(self.presence)) == 1:
            return ALONE
        known = self.presence
        columns = [
            model.weight
            for name, model in zip(names, models, strict=True)
            if (known is None and name != "*") or (known is not None and share_of(known, name) >= COLUMN)
        ]
        return SHARPNESS * max(sum(columns), LEAST_COLUMNS) ** GROWTH

    def _expected(self, names: list[str]) -> Floats:
        """Of each type what the kernels need to know; see ``ComparisonFamily.presence``."""
        types = [(1.0, self.presence or {})] if self.types is None else self.types
        weights = [weight for weight, _ in types]
        if not all(isinstance(weight, int | float) and weight > 0.0 for weight in weights) or not (
            abs(sum(weights) - 1.0) < 1e-6
        ):
            raise ValueError(f"types must have weights above 0 that sum to 1, got {weights!r}")
        for name in names:
            share_of(self.presence or {}, name)  # is checked even if types say more
        unheard = np.array([self.presence is not None and not self.presence.get(name) for name in names])
        rows = []
        for weight, presence in types:
            expected = np.array([share_of(presence, name) for name in names]) * self.rate
            total = expected[~unheard].sum()
            rows.append([*np.where(unheard, UNHEARD, expected), total, self.rate, np.log(weight)])
        return np.array(rows)

    def _modelled(self) -> tuple[list[str], list[Attribute]]:
        """The attributes that are not ignored."""
        if not self.attributes:
            raise ValueError("Record needs attributes; give them, or let Record.infer(fragments) find them")
        for name, model in self.attributes.items():
            if model is not None and not isinstance(model, Attribute):
                raise TypeError(f"attribute {name!r} must be Text, Category, … or None, got {model!r}")
        kept = {name: model for name, model in self.attributes.items() if model is not None}
        if not kept:
            raise ValueError("Record needs an attribute that is not ignored")
        return list(kept), list(kept.values())

    def width(self, n_features: int) -> int:
        return WIDTH + len(self._vocabulary.presence)

    def log_size(self, size: int) -> float:
        """What the number of fragments adds to log p(c)."""
        return -self._crowding * float(gammaln(size))

    def log_presence(self, mentions: Integers, size: int) -> float:
        """What ``size`` fragments with so many mentions of each attribute, by number, add to log p(c).

        The formula of :mod:`partita.models.records.entity_types`.
        """
        if self.rate == 0.0:
            return 0.0
        heard = self._vocabulary.presence[0, :-3] >= 0.0
        expected, mentions = self._vocabulary.presence[:, :-3][:, heard], mentions[heard]
        totals, rates, log_weights = self._vocabulary.presence[:, -3:].T
        rising = gammaln(expected + mentions) - gammaln(expected)
        of_types = log_weights - totals * np.log1p(size / rates) + rising.sum(axis=1)
        return float(np.logaddexp.reduce(of_types) - mentions.sum() * np.log(rates[0] + size))

    def validate(self, X: Any) -> list[Any]:
        names, models = self._modelled()
        for name, used in zip(names, models, strict=True):
            used.check(name)
        return self.read(checked(X))

    def read(self, fragments: Iterable[Mapping[str, list[Any]]]) -> list[Any]:
        """Fragments as :meth:`validate` returns them, from those that ``check_fragments`` has returned once."""
        names, models = self._modelled()
        number = {name: a for a, name in enumerate(names)}
        readers: dict[str, Reader | None] = {}
        found = []
        with uncollected():
            for row, given in enumerate(fragments):
                fragment = ReadFragment()
                fragment.pairs = []
                for name, values in given.items():
                    if name not in readers:
                        a = self._place(row, name, number)
                        prefix = "" if name in number else f"{name} "
                        readers[name] = None if a is None else Reader(models[a], a, prefix)
                    reader = readers[name]
                    if reader is None:
                        continue
                    try:
                        said = reader.read(values, fragment.pairs)
                    except ValueError as error:
                        raise ValueError(f"row {row}, attribute {name!r}: {error}") from None
                    if said:
                        fragment[name] = said
                found.append(fragment)
        return found

    def told(self, fragments: Iterable[Mapping[str, list[Any]]]) -> list[Any]:
        """What :meth:`held` makes of fragments that were read before: their values, without what these compare by."""
        known = self.attributes or {}
        rest = known.get(OTHER)
        found = []
        for given in fragments:
            fragment = {}
            for name, values in given.items():
                model = known.get(name, rest)
                said = [] if model is None else [item for value in values for item in model.items(value)]
                if said:
                    fragment[name] = said
            found.append(fragment)
        return found

    def _place(self, row: int, name: str, number: Mapping[str, int]) -> int | None:
        """The number of the attribute that models what is called ``name``; None if it is ignored."""
        attributes = self.attributes or {}
        known = name if name in attributes else OTHER
        if known not in attributes:
            listed = ", ".join(map(repr, attributes))
            raise ValueError(f"row {row}: unknown attribute {name!r}; the schema has {listed}")
        return number.get(known)

    def held(self, X: Any) -> list[Any]:
        return [dict(fragment) for fragment in X]

    # ------------------------------------------------------------------ what a store keeps beside fragments

    def features(self, encoded: Floats) -> tuple[Integers, Integers]:
        """How many values encoded fragments say, and these as features, one fragment's after the other's."""
        return self._vocabulary.said(encoded)

    def recalled(self, lengths: Integers, features: Integers) -> Floats:
        """Fragments that say so many features each, encoded."""
        return self._vocabulary.store(lengths, features)

    def values_of(self, features: Integers) -> Values:
        """What the values behind some features are compared by, as long as the model is the same."""
        return self._vocabulary.to_keep(features)

    def take_in_values(self, values: Values) -> Integers:
        """The features of values that :meth:`values_of` has returned, in a model that does not know them yet."""
        return self._vocabulary.take_in(values)

    # ------------------------------------------------------------------ parts of what does not fit into memory

    def hold_values(self, values: Values) -> Integers:
        """The features of values that :meth:`values_of` has returned, which are not asked for by what they say."""
        return self._vocabulary.hold(values)

    def length(self) -> Length:
        """How many observations and values there are, for :meth:`cut_to`."""
        return self._vocabulary.length()

    def cut_to(self, length: Length) -> None:
        """Let go of observations that were recalled since, and of values that were held."""
        self._vocabulary.cut_to(length)

    def _pairs(self, observation: ReadFragment) -> Iterable[tuple[int, str]]:
        return observation.pairs


class Reader:
    """How the values of one attribute are read, each text once.

    Parameters
    ----------
    model : Attribute
    a : int
        Its number.
    prefix : str
        What values begin with as the model compares them.
    """

    def __init__(self, model: Attribute, a: int, prefix: str) -> None:
        self.model, self.a, self.prefix = model, a, prefix
        self.known: dict[str, tuple[list[Any], list[tuple[int, str]]]] = {}

    def read(self, values: list[Any], pairs: list[tuple[int, str]]) -> list[Any]:
        """The values that some consist of; what they are compared by is added to ``pairs``.

        Many fragments may share the list.
        """
        if len(values) == 1 and type(value := values[0]) is str and value in self.known:
            known = self.known[value]
            pairs += known[1]
            return known[0]
        said: list[Any] = []
        for value in values:
            found = self.known.get(value) if type(value) is str else None
            if found is None:
                items = self.model.items(value)
                found = items, [(self.a, self.prefix + self.model.parse(item)) for item in items]
                if type(value) is str:
                    self.known[value] = found
            said = found[0] if len(values) == 1 else said + found[0]
            pairs += found[1]
        return said


def nobody_says_other(presence: Mapping[str, float] | None) -> bool:
    """Whether it is known that fragments mention nothing that "*" would stand for."""
    return presence is not None and presence.get(OTHER) == 0.0


def share_of(presence: Mapping[str, float], name: str) -> float:
    """The share of fragments that mention an attribute, a little for one that none has mentioned yet."""
    share = presence.get(name, 0.0)
    if not (isinstance(share, int | float) and 0.0 <= share < np.inf):
        raise ValueError(f"presence of {name!r} must be a number of at least 0, got {share!r}")
    return share or NEVER
