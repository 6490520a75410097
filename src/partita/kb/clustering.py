"""The sampler of a knowledge base: fragments by number, entities by number, and what has changed since.

It holds the live sampler and the number of the entity that each fragment is of, follows the best clustering
fragment by fragment (so that what happened, and to whom, does not depend on how fragments were batched) and
knows which subproblems a store must write again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from partita._core.progress import Watcher, unwatched
from partita._core.typing import Array, Floats, Integers
from partita.kb.identity import NOBODY, Change, renamed
from partita.kb.language import Network, black_box
from partita.kb.values import KnownValues
from partita.models.records.record import Record
from partita.models.records.vocabulary import Growing
from partita.posterior import Posterior
from partita.smc.blocks.fit import fit_encoded
from partita.smc.engine import Engine
from partita.smc.files.packing import PACKED, check, free_slots, live_slots, pack_slots, unpack, with_room
from partita.smc.moves.concentration import weigh_all
from partita.smc.moves.constrain import constrain
from partita.smc.moves.refine import look_again, refine
from partita.smc.reading.best import best_clustering
from partita.smc.reading.snapshot import posterior_of
from partita.smc.sampler import ODDS
from partita.smc.state.access import changed_since, just_written, n_changes
from partita.smc.state.constraints import constraints_from
from partita.smc.state.keys import Keys
from partita.smc.state.state import ARRAYS, COUNTS, Settings, dismantle

VERSION = 1  # of the packed subproblems
Pairs = Sequence[Sequence[int]]  # of fragments, by number
Cuts = Sequence[Sequence[Sequence[int]]]  # of each the fragments on its sides
Touched = Iterable[Sequence[int]]  # lists of fragments to be looked at together

PARTS = ("members", "sizes", "cells", "scores")  # of a subproblem, as it is packed


class Subproblem(NamedTuple):
    """A subproblem as a store keeps it: its slot, its extents, and its arrays one after the other."""

    slot: int
    rows: int
    columns: int
    clusters: int
    body: bytes


class Numbers(NamedTuple):
    """What a store keeps of the sampler beside its subproblems."""

    log_alpha: str  # a float as hexadecimal digits
    next_alpha: int
    random: int
    free_slots: list[int]
    next_entity: int
    next_value: int = 0


class Codes(NamedTuple):
    """A fragment as a store keeps it beside what it says, so that it need not be read again."""

    key_codes: bytes  # by which it finds others
    value_numbers: bytes | None  # what it says; None where a language model reads it


class Outcome(NamedTuple):
    """What one observation, or another cause, has changed."""

    changes: list[Change]
    moves: list[tuple[int, int, int]]  # a fragment's number, the entity it was of, and the one it is of now
    fragment: int = NOBODY  # the number of the one that caused it
    revived: frozenset[int] = frozenset()  # entities that had ended, and have fragments again

    def followed_by(self, more: Outcome) -> Outcome:
        """What both have changed, one after the other, from the cause of the first."""
        return self._replace(changes=self.changes + more.changes, moves=self.moves + more.moves)


class Clustering:
    """The posterior over the entities of a knowledge base's fragments.

    Parameters
    ----------
    model : Record
        Fitted to fragments like those to come.
    n_particles : int
    exact : bool
        Whether a fragment meets all entities, or those that share a key with it.
    network : Network, optional
        The language model that scores clusters, where the records propose them.
    """

    def __init__(self, model: Record, n_particles: int, exact: bool, network: Network | None = None) -> None:
        self.model, self.network = model, network
        model.check(1)
        self._settings = Settings(n_particles, learn_alpha=1, longest_odds=ODDS)
        scored = model if network is None else black_box(network, model)
        self.engine = Engine(scored, self._settings, 1, 2, 0.0, 0, None if exact else "auto")
        self._all_numbers, self._all_entities = Growing(np.int64), Growing(np.int64)
        self.added_codes: list[Codes] = []  # of the fragments of the last call of :meth:`add`
        self.values = None if network is not None else KnownValues(model)
        self.next_entity = 1
        self._saved = 0  # the last change of the state that a store knows of
        self._saved_alpha = 0.0
        self._saved_numbers: tuple[float, ...] = ()
        self.links: dict[Any, Any] = {}  # the weakest links of entities, where they have been asked for
        self.doubted: dict[
            int, Any
        ] = {}  # the particles of undecided subproblems, where they have been asked for,
        self.doubted_at = (-1, 0.0)  # and the change and α that they were read at

    @property
    def numbers(self) -> Integers:
        """Of the fragments that are, or were, observations."""
        return self._all_numbers.used

    @property
    def entity(self) -> Integers:
        """Of each observation; what is written there counts."""
        return self._all_entities.used

    def hold(self, numbers: Integers, entity: Integers) -> None:
        """Have fragments as observations, each of an entity."""
        for kept, values in ((self._all_numbers, numbers), (self._all_entities, entity)):
            kept.n = 0
            kept.extend(values)

    # ------------------------------------------------------------------ changing

    def add(self, numbers: Sequence[int], fragments: Sequence[Any]) -> Iterator[Outcome]:
        """Observe fragments in order, and tell what each has changed; all of it must be consumed.

        Fragments are as :meth:`Record.validate` returns them, their numbers above all before.
        """
        engine, first = self.engine, self.engine.n_observations
        encoded, keys = engine.encode(fragments), self.model.keys(fragments)
        self.added_codes = self.codes_of(encoded, keys)
        end = engine.store(encoded, keys)
        engine.keep(fragments)
        for kept, more in ((self._all_numbers, numbers), (self._all_entities, [NOBODY] * (end - first))):
            kept.n = first  # without those of a call that has failed
            kept.extend(more)
        if self.network is not None:  # which may be asked for any of them, ahead of time
            engine.need(live_slots(engine.state))
        while engine.n_observations < end:
            yield from self._follow(engine.due(end))

    def codes_of(self, encoded: Any, keys: Keys) -> list[Codes]:
        """Encoded fragments with their keys, as a store has them."""
        starts, codes = keys
        own = [codes[start:stop].astype("<i8").tobytes() for start, stop in pairwise(starts.tolist())]
        said = [None] * len(own) if self.values is None else self.values.number(encoded)
        return list(map(Codes, own, said))

    def _follow(self, end: int) -> Iterator[Outcome]:
        """Observe up to ``end``, when α may be due to be learnt, or until there is more to name."""
        engine, start, known = self.engine, self.engine.n_observations, self.next_entity
        fits, self.next_entity = engine.follow(end, self.entity, self.next_entity)
        stop = engine.n_observations
        for x in range(start, stop):
            outcome = self._outcome(x, known)
            if x == stop - 1 and not fits:
                outcome = self.rename(just_written(engine.state))
            if x == end - 1 and engine.learns_alpha:
                outcome = outcome.followed_by(self._learn_alpha())
            known = max(known, int(self.entity[x]) + 1)
            yield outcome._replace(fragment=int(self.numbers[x]))

    def _outcome(self, x: int, known: int) -> Outcome:
        """That ``x`` has joined an entity, or is the first of one that is not among those ``known``."""
        entity = int(self.entity[x])
        number = int(self.numbers[x])
        change = Change("created" if entity >= known else "joined", entity, member=number)
        return Outcome([change], [(number, NOBODY, entity)])

    def _learn_alpha(self) -> Outcome:
        """Learn the concentration, if that is due."""
        before = int(n_changes(self.engine.state))
        self.engine.learn_alpha()
        return self.rename(changed_since(self.engine.state, before)[0])

    def encode(self, fragments: Sequence[Any], first: int) -> tuple[Floats, Keys]:
        """Fragments that are to be loaded, from observation ``first`` on, as the sampler has them, and their keys."""
        self.engine.keep(fragments, first)
        return self.engine.encode(fragments), self.model.keys(fragments)

    def load(
        self, encoded: Floats, keys: Keys, workers: int, progress: Watcher = unwatched
    ) -> tuple[Integers, Floats]:
        """Observe the first fragments there are, numbered from 1, in blocks.

        Parameters
        ----------
        encoded, keys
            Of all of them, as :meth:`encode` has returned them.
        workers : int
            How many threads; the result does not depend on it.

        Returns
        -------
        entity : int array
            Of each fragment: entities are numbered in order of their first fragments.
        sure : array
            How sure each is of its entity.
        """
        engine = self.engine
        fit_encoded(engine, encoded, keys, workers, progress)
        _, clusters, sure = best_clustering(engine.state, live_slots(engine.state))
        _, first, cluster = np.unique(clusters, return_index=True, return_inverse=True)
        entity = 1 + np.argsort(np.argsort(first))[cluster]
        self.hold(np.arange(1, len(encoded) + 1), entity)
        self.next_entity = len(first) + 1
        self._saved = -1  # for nothing of it is
        return entity, sure

    def remove(self, number: int) -> Outcome:
        """Take a fragment out, and tell what that has changed."""
        x = self.place(number)
        left = int(self.entity[x])
        self.engine.remove(x)
        self.engine.forget(x)
        self.entity[x] = NOBODY
        more = self.rename(just_written(self.engine.state))
        changes = [Change("left", left, member=number), *more.changes]
        rest = best_clustering(self.engine.state, just_written(self.engine.state))[0]
        if left not in self.entity[rest] and not any(c.kind == "merged" and c.other == left for c in changes):
            changes.append(Change("emptied", left))
        return Outcome(changes, [(number, left, NOBODY), *more.moves], number)

    def constrain(self, together: Pairs, cuts: Cuts, touched: Touched) -> Outcome:
        """Condition on pairs and cuts of fragments; ``touched`` are those whose constraints have changed."""
        before = int(n_changes(self.engine.state))
        constrain(self.engine, self.constraints(together, cuts), [self.places(some) for some in touched])
        return self.rename(changed_since(self.engine.state, before)[0])

    def constraints(self, together: Pairs, cuts: Cuts) -> Any:
        """Constraints on observations from those on fragments."""
        pairs = [(self.place(a), self.place(b)) for a, b in together]
        return constraints_from(pairs, [[self.places(side) for side in sides] for sides in cuts])

    def refine(
        self,
        after: int | None = None,
        most: int | None = None,
        progress: Watcher = unwatched,
        workers: int = 1,
    ) -> Outcome:
        """One sweep of refinement: of all, or of what fragments with numbers ``after`` one have touched.

        Replays have ``most`` observations at most, if that is given. ``progress`` is told of the subproblems. The
        result does not depend on the number of ``workers``.
        """
        engine, before = self.engine, int(n_changes(self.engine.state))
        present = engine.present
        of = None if after is None else present[self.numbers[present] > after]
        refine(engine, of, most, progress, workers)
        return self.rename(changed_since(engine.state, before)[0])

    def look_again(self, after: int, most: int) -> Outcome:
        """Refine what fragments with numbers ``after`` one have touched, for a model of records.

        Subproblems are replayed with at most so many fragments, all together, and then with their neighbours.
        """
        engine, before = self.engine, int(n_changes(self.engine.state))
        first = int(np.searchsorted(self.numbers, after, side="right"))
        look_again(engine, first + np.flatnonzero(self.entity[first:] != NOBODY), most)
        return self.rename(changed_since(engine.state, before)[0])

    def rename(self, slots: Integers) -> Outcome:
        """Name the best clusters of some subproblems anew."""
        if not len(slots):
            return Outcome([], [])
        members, clusters, _ = best_clustering(self.engine.state, slots)
        before, numbers = self.entity[members], self.numbers[members]
        after, changes, self.next_entity = renamed(numbers, before, clusters, self.next_entity)
        self.entity[members] = after
        moved = after != before
        columns = (numbers[moved].tolist(), before[moved].tolist(), after[moved].tolist())
        return Outcome(changes, list(zip(*columns, strict=True)))

    def succeed(self, outcome: Outcome, before: int) -> Outcome:
        """What a fragment has changed whose earlier version was an entity by itself, called ``before``.

        If it is alone again, it goes on under that name, else that name leads to where it is now.
        """
        x = self.place(outcome.fragment)
        here = int(self.entity[x])
        fellows = best_clustering(self.engine.state, [self.engine.subproblem_of(x)])[0]
        if np.count_nonzero(self.entity[fellows] == here) > 1:
            changed = Change("updated", before, member=outcome.fragment)  # and so has left it
            return outcome._replace(changes=[changed, *outcome.changes, Change("merged", here, before)])
        self.entity[x] = before
        self.next_entity -= here == self.next_entity - 1
        name = {here: before}
        changes = [
            c._replace(entity=name.get(c.entity, c.entity), other=name.get(c.other, c.other))
            for c in outcome.changes
        ]
        changes = [c for c in changes if not (c.kind == "created" and c.entity == before)]
        moves = [(n, name.get(old, old), name.get(new, new)) for n, old, new in outcome.moves]
        return outcome._replace(
            changes=[*changes, Change("updated", before, before, outcome.fragment)], moves=moves
        )

    def rename_from(self, entity: Integers, next_entity: int) -> Outcome:
        """Name all clusters anew, after what the entities of the observations were in another clustering."""
        self.next_entity = next_entity
        self.hold(self.numbers, entity)
        return self.rename(changed_since(self.engine.state, 0)[0])

    # ------------------------------------------------------------------ asking

    def place(self, number: int) -> int:
        """The observation that a fragment is."""
        x = int(np.searchsorted(self.numbers, number))
        if x == len(self.numbers) or self.numbers[x] != number:
            raise KeyError(number)
        return x

    def places(self, numbers: Iterable[int]) -> list[int]:
        """The observations that fragments are."""
        return [self.place(number) for number in numbers]

    def said(self, x: int) -> dict[str, list[Any]]:
        """What an observation says, as the model takes it."""
        self.engine.need([self.engine.subproblem_of(x)])
        fragment: dict[str, list[Any]] = self.engine.observation(x)
        return fragment

    @property
    def posterior(self) -> Posterior:
        """The posterior of the fragments present, in order of their numbers."""
        return posterior_of(self.engine.state)

    @property
    def present(self) -> Integers:
        """The numbers of the fragments present."""
        return self.numbers[self.engine.present]

    # ------------------------------------------------------------------ for the store

    def unsaved(self) -> tuple[list[Subproblem], list[int]]:
        """The subproblems that have changed since the last :meth:`saved`, and the slots that are free now."""
        live, freed = changed_since(self.engine.state, self._saved)
        packed = pack_slots(self.engine.state, live)
        packed["members"] = self.numbers[packed["members"]]
        return list(cut(packed)), freed.tolist()

    def unsaved_members(self) -> tuple[Integers, Floats]:
        """Of fragments in subproblems that have changed: numbers, and how sure they are of their entities.

        A new concentration moves the weights of all.
        """
        since = self._saved if self.engine.alpha == self._saved_alpha else -1
        live, _ = changed_since(self.engine.state, since)
        members, _, sure = best_clustering(self.engine.state, live)
        return self.numbers[members], sure

    def saved(self) -> None:
        """What has changed so far is kept elsewhere."""
        self._saved, self._saved_alpha = int(n_changes(self.engine.state)), self.engine.alpha
        self._saved_numbers = self._numbers()
        if self.values is not None:
            self.values.saved()

    @property
    def is_saved(self) -> bool:
        """Whether all is kept elsewhere."""
        return self._saved == int(n_changes(self.engine.state)) and self._saved_numbers == self._numbers()

    def _numbers(self) -> tuple[float, ...]:
        """What may change without any subproblem."""
        _, counts, _, log_alpha, random, _ = dismantle(self.engine.state)
        return float(log_alpha), int(counts[COUNTS.index("next_alpha")]), int(random), self.next_entity

    def to_numbers(self) -> Numbers:
        """What a store keeps beside the subproblems."""
        _, counts, _, log_alpha, random, _ = dismantle(self.engine.state)
        next_alpha = int(counts[COUNTS.index("next_alpha")])
        slots = free_slots(self.engine.state).tolist()
        next_value = 0 if self.values is None else self.values.next_number
        return Numbers(float(log_alpha).hex(), next_alpha, int(random), slots, self.next_entity, next_value)

    def restore(
        self,
        numbers: Integers,
        keys: tuple[Integers, Integers],
        entity: Integers,
        subproblems: Iterable[Subproblem],
        kept: Numbers,
        fetch: Callable[[Integers], list[Any]],
        tell: Callable[[Integers], list[Any]],
    ) -> None:
        """Become what was kept; ValueError if it makes no sense.

        Parameters
        ----------
        numbers, keys, entity
            Of the fragments present, in ascending order of their numbers; keys one fragment's after the other's,
            and where each fragment's begin.
        subproblems, kept
            What :meth:`unsaved` and :meth:`to_numbers` have returned.
        fetch : callable
            From numbers to fragments, as the model takes them. What fragments say is only fetched when a
            subproblem is needed that they are in, so that to load takes as long as to read numbers.
        tell : callable
            The same for those that are known already (:meth:`recall`), as :meth:`said` returns them.
        """
        self.next_entity = int(kept.next_entity)
        self.hold(numbers, entity)
        if not len(numbers):
            return
        engine = self.engine
        packed = joined(list(subproblems), len(numbers), np.array(kept.free_slots, np.int64))
        packed["members"] = places(packed["members"], numbers)
        check(packed, weighed=False)
        parts = dismantle(engine.state)[0]
        empty = dict(zip(ARRAYS, parts, strict=True))["statistics"][0]
        packed = with_room(packed, 2, len(empty))
        if engine.finds_by is not None:
            packed |= {"key_counts": np.diff(keys[0]), "keys": keys[1]}
        log_alpha = float.fromhex(kept.log_alpha)
        constraints = engine.constraints
        engine.state = unpack(
            packed, empty, int(kept.next_alpha), self._settings, log_alpha, int(kept.random), constraints
        )
        weigh_all(engine.state)
        engine.expect(len(numbers), lambda x: fetch(self.numbers[x]), lambda x: tell(self.numbers[x]))
        self.saved()

    def recall(self, said: Sequence[bytes | None]) -> None:
        """Have what was kept of what fragments say, all those there are, so that it need not be fetched and read."""
        known = [x for x, own in enumerate(said) if own is not None]
        if self.values is not None and known:
            encoded = self.values.recall([own for own in said if own is not None])
            self.engine.recall(np.array(known, np.int64), encoded)

    def unsaid(self, values: Integers) -> list[int]:
        """Those of some values, by their numbers in the store, that no fragment says any more."""
        if self.values is None:
            return []
        gone: list[int] = self.values.unsaid(values, self.engine.stored(self.engine.read)).tolist()
        return gone


def places(members: Integers, numbers: Integers) -> Integers:
    """Where each of ``members`` is among ``numbers``, which ascend."""
    found = np.minimum(np.searchsorted(numbers, members), len(numbers) - 1)
    if not np.array_equal(numbers[found], members):
        raise ValueError("a subproblem holds fragments that are not there")
    return found


def cut(packed: dict[str, Array]) -> Iterator[Subproblem]:
    """The subproblems that are packed, one by one."""
    at = dict.fromkeys(PARTS, 0)
    for slot, rows, columns, clusters in packed["shapes"].tolist():
        sizes = packed["sizes"][at["sizes"] : at["sizes"] + columns]
        lengths = (int(sizes.sum()), columns, rows * columns, clusters)
        body = []
        for name, length in zip(PARTS, lengths, strict=True):
            part = packed[name][at[name] : at[name] + length]
            body.append(np.ascontiguousarray(part, PACKED[name]).tobytes())
            at[name] += length
        yield Subproblem(slot, rows, columns, clusters, b"".join(body))


def joined(subproblems: list[Subproblem], n: int, free: Integers) -> dict[str, Array]:
    """Subproblems as :func:`~partita.smc.files.packing.check` takes them, in order of their slots; n fragments."""
    subproblems.sort()
    parts: dict[str, list[Array]] = {name: [] for name in PARTS}
    for slot, rows, columns, clusters, body in subproblems:
        fixed = {"sizes": columns, "cells": rows * columns, "scores": clusters}
        known = sum(PACKED[name].itemsize * length for name, length in fixed.items())
        lengths = {"members": (len(body) - known) // PACKED["members"].itemsize} | fixed
        at = 0
        for name in PARTS:
            end = at + PACKED[name].itemsize * lengths[name]
            parts[name].append(np.frombuffer(body[at:end], PACKED[name]))
            at = end
        if at != len(body) or any(len(parts[name][-1]) != lengths[name] for name in PARTS):
            raise ValueError(f"subproblem {slot} has another length than its shape says")
        if parts["sizes"][-1].sum() != lengths["members"]:
            raise ValueError(f"subproblem {slot} has other members than its blocks")
    packed = {name: np.concatenate([np.empty(0, PACKED[name]), *parts[name]]) for name in PARTS}
    shapes = np.array([subproblem[:4] for subproblem in subproblems], np.int64).reshape(-1, 4)
    rest = {"shapes": shapes, "free_slots": free, "weights": np.zeros(shapes[:, 1].sum())}
    nothing = {"data": np.empty((n, 0)), "statistics": np.empty((len(packed["scores"]), 0))}
    return packed | rest | nothing | {"key_counts": np.empty(0, np.int64), "keys": np.empty(0, np.int64)}
