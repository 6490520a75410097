"""The knowledge base: fragments in, entities out, nothing merged for good (DESIGN, section 4).

Every change is one transaction of the store: the fragments, the state of the sampler, the events and the
memberships they bring about come together or not at all. What is asked of entities is read from the tables;
the sampler is only loaded when something is added, changed, or asked of the posterior.

This class only delegates: to :mod:`~partita.kb.ingest` what changes fragments, to
:mod:`~partita.kb.judgements` what humans say, to ``queries`` what is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import combinations, islice, product
from os import PathLike
from types import TracebackType
from typing import Any, Self

from partita._core.checks import whole
from partita.kb import ingest, judgements
from partita.kb.fragments import Fragment
from partita.kb.ingest import Added
from partita.kb.labels import Taught
from partita.kb.queries import answers, posterior
from partita.kb.queries.diagnosis import Diagnosis, diagnose
from partita.kb.queries.evaluation import evaluate, reliability
from partita.kb.queries.explain import explain
from partita.kb.queries.mistakes import Mistaken, worst
from partita.kb.queries.questions import Question, expected_wrong_pairs, questions
from partita.kb.queries.search import search
from partita.kb.queries.statistics import stats
from partita.kb.session import open_session
from partita.kb.store.database import Store, get
from partita.kb.store.judgements import standing
from partita.metrics import Calibration
from partita.models.records.record import Record
from partita.smc.engine import Diagnostics

BATCH = 500  # fragments of one transaction
JUDGED = 1000  # pairs of fragments of one judgement that are not asked about again


class KnowledgeBase:
    """Fragments, and the entities they describe, in a store. Made by :func:`partita.kb.open`."""

    def __init__(
        self,
        target: str | PathLike[str],
        *,
        schema: str | Record | None = None,
        n_particles: int = 20,
        exact: bool = False,
        create: bool = True,
        model: str | None = None,
    ) -> None:
        self._session = open_session(target, schema, n_particles, exact, create, model)

    @property
    def store(self) -> Store:
        """The database."""
        return self._session.store

    @property
    def settings(self) -> dict[str, Any]:
        """How it was set up, and what has been learnt since."""
        return self._session.settings

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Give the store back. Whatever was done is kept already."""
        self._session.close()

    # ------------------------------------------------------------------ changing

    def add(
        self,
        fragments: Any,
        *,
        batch: int = BATCH,
        progress: Callable[[int], object] = lambda done: None,
    ) -> Added:
        """Take fragments in; each is durable, and its consequences drawn, when its batch is done.

        A fragment whose id is known already is passed over if it says the same, else it replaces the one
        before. If something is refused, the batches before it are in. The first call also learns the model,
        from all it is given; give it enough to learn from. After that any batching gives the same result.
        After every twenty fragments what these have touched is refined, at a bounded cost.

        Parameters
        ----------
        fragments : iterable of mappings or Fragments, or a DataFrame
            ``{"properties": {attribute: [values]}, "id": …, "source": …}``, or flat mappings.
        batch : int
            How many go into one transaction.
        progress : callable
            Called after each batch with the number of fragments done.
        """
        return ingest.add(self._session, fragments, batch, progress)

    def remove(self, *ids: str) -> None:
        """Forget fragments, as if they had never come; their contents are erased.

        Their entities lose them at once; that they were there is in the events, by their ids.
        """
        ingest.remove(self._session, ids)

    def refine(self, sweeps: int = 1, *, progress: Callable[[int], object] = lambda done: None) -> None:
        """Look again at all that is known, in hindsight; never makes the posterior a worse approximation."""
        ingest.refine(self._session, sweeps, progress)

    def relearn(
        self,
        schema: str | None = None,
        *,
        model: str | None = None,
        labels: Mapping[str, Any] | None = None,
    ) -> Taught:
        """Learn the model anew from all fragments, and cluster them again; entities keep their ids.

        What was judged of fragments teaches, too, and so do known matches. It also happens by itself, whenever there
        are three times as many fragments as it was learnt from.

        Parameters
        ----------
        schema : str, optional
            TOML, in place of what is inferred from the fragments.
        model : str, optional
            Another model to cluster with from now on, as in :func:`partita.kb.open`.
        labels : mapping, optional
            The true entities of some fragments, by id; ``{}`` forgets those that were given before. They teach, now
            and whenever the model is learnt again, and do not bind: what must hold is for :meth:`confirm` and
            :meth:`separate` to say.

        Returns
        -------
        Taught
            How many labels and judgements it was learnt from, and how many ids with a label no fragment has.
        """
        return ingest.relearn(self._session, schema, model, labels)

    # ------------------------------------------------------------------ judgements

    def confirm(self, a: str, b: str, *, user: str | None = None) -> int:
        """Say that two fragments, or entities, are of the same thing; the posterior conditions on it.

        Of an entity it is said of all fragments that it has at present.

        Returns
        -------
        int
            The judgement's number, for :meth:`undo`.
        """
        return judgements.judge(self._session, "confirm", a, b, user)

    def separate(self, a: str, b: str, *, user: str | None = None) -> int:
        """Say that two fragments, or entities, are not of the same thing; as :meth:`confirm`."""
        return judgements.judge(self._session, "separate", a, b, user)

    def unsure(self, a: str, b: str, *, user: str | None = None) -> int:
        """Say that one cannot tell, so that :meth:`uncertain` does not ask again; changes nothing else."""
        return judgements.judge(self._session, "unsure", a, b, user)

    def split(
        self, entity: str, fragments: Sequence[str] = (), *, by: str | None = None, user: str | None = None
    ) -> int:
        """Say that an entity is several things; the posterior conditions on it.

        Parameters
        ----------
        entity : str
        fragments : sequence of str
            Those that are of another thing than the rest.
        by : str
            An attribute, instead of them: fragments of which it has different values are of different things.
            Those that say nothing of it go where they fit best.

        Returns
        -------
        int
            The judgement's number, for :meth:`undo`.
        """
        return judgements.split(self._session, entity, by, fragments, user)

    def undo(self, judgement: int | None = None, *, user: str | None = None) -> int:
        """Take a judgement back, the last one unless it is named; returns its number.

        If nothing has changed there since, everything is as it was before, ids of entities as well; otherwise
        the posterior is what it would have been without.
        """
        return judgements.undo(self._session, judgement, user)

    # ------------------------------------------------------------------ asking the tables

    def entities(self, *, minimum: int = 1, limit: int | None = None) -> Iterator[answers.Entity]:
        """All entities, the largest first.

        Parameters
        ----------
        minimum : int
            Leave out those with fewer fragments.
        limit : int, optional
            How many at most.
        """
        with self.store.reading() as connection:
            yield from answers.entities(connection, minimum, limit)

    def entity(self, id: str, *, as_of: int | datetime | None = None) -> answers.Entity:
        """An entity, now or as of a moment: of an event, or a time. An id that was merged leads on."""
        with self.store.reading() as connection:
            return answers.entity(connection, id, as_of)

    def entity_of(self, fragment: str) -> answers.Entity:
        """The entity that a fragment is of."""
        with self.store.reading() as connection:
            return answers.entity_of(connection, fragment)

    def fragment(self, id: str) -> Fragment:
        """A fragment, as it came."""
        with self.store.reading() as connection:
            return answers.fragment(connection, id)

    def search(self, text: str, *, limit: int = 10) -> list[answers.Found]:
        """The entities whose fragments have these words, or words like them, the best match first."""
        with self.store.reading() as connection:
            return search(connection, text, limit)

    def events(
        self, *, since: int | datetime | None = None, entity: str | None = None, limit: int | None = None
    ) -> list[answers.Event]:
        """What has happened, in order, after a moment, or to one entity."""
        with self.store.reading() as connection:
            return answers.events(connection, since, entity, limit)

    def judgements(self) -> list[answers.Judgement]:
        """All judgements, those that were undone as well."""
        with self.store.reading() as connection:
            return answers.judgements(connection)

    def stats(self) -> dict[str, Any]:
        """How much there is of everything, and how large the store is."""
        with self.store.reading() as connection:
            return stats(connection, self.store, self.settings)

    @property
    def diagnostics(self) -> Diagnostics | None:
        """What the sampler has done since it was loaded, or begun anew; None if it has not been needed."""
        clustering = self._session.clustering
        return None if clustering is None else clustering.engine.diagnostics

    @property
    def schema(self) -> str:
        """The schema, as TOML; its strengths are those that have been learnt."""
        with self.store.reading() as connection:
            model = get(connection, "model")
        if model is None:
            return str(self.settings["schema"] or "")
        return Record.from_json(model).to_toml()

    # ------------------------------------------------------------------ asking the posterior

    def explain(self, a: str, b: str) -> Any:
        """Why two fragments, or entities, are together or apart: each attribute's evidence in nats."""
        with self._session.asking() as (connection, clustering):
            return explain(connection, clustering, *answers.two_fragments(connection, a, b))

    def uncertain(self, limit: int = 10, *, passed: Iterable[tuple[str, str]] = ()) -> list[Question]:
        """The questions worth a human's time: those whose answers are expected to remove most errors.

        Each is chosen as if those before it were answered. Large entities that nothing speaks against are asked
        about, too, where they would come apart first.

        Parameters
        ----------
        limit : int
            How many at most.
        passed : pairs of ids
            Fragments of questions that are to be passed over, as if they were answered.
        """
        with self._session.asking() as (connection, clustering):
            judged = {
                frozenset(pair)
                for row in standing(connection)
                for one, other in combinations(row.sides, 2)
                for pair in islice(product(one, other), JUDGED)
            } | set(map(frozenset, passed))
            return questions(connection, clustering, judged, whole("limit", limit, 1))

    def wrong_pairs(self) -> float:
        """How many pairs of fragments are expected to be wrongly together, or wrongly apart, of those in doubt."""
        with self._session.asking() as (_, clustering):
            return expected_wrong_pairs(clustering)

    def together(self, a: str | Sequence[str], b: str | Sequence[str]) -> Any:
        """The probability that two fragments are of one entity; of two lists, a matrix."""
        with self._session.asking() as (connection, clustering):
            return posterior.together(connection, clustering, a, b)

    def labels(self, loss: str = "map", **costs: Any) -> dict[str, int]:
        """A clustering of the fragments, by id, that is the best for a loss; see ``Posterior.labels``."""
        with self._session.asking() as (connection, clustering):
            return posterior.labels(connection, clustering, loss, **costs)

    def sample(self, n: int, random_state: Any = 0) -> dict[str, list[int]]:
        """Draws of whole clusterings from the posterior: of each fragment its labels in all of them."""
        with self._session.asking() as (connection, clustering):
            return posterior.sample(connection, clustering, n, random_state)

    def evaluate(self, truth: Mapping[str, Any], loss: str = "map") -> dict[str, float]:
        """How good the clustering is, against the true entities of some fragments, by id.

        Precision, recall and F1 are B-cubed, means over fragments; ``harmonic f1`` is 2PR/(P + R) of these, which
        others report. Those of pairs follow, and how far probabilities are off.
        """
        with self._session.asking() as (connection, clustering):
            return evaluate(connection, clustering, truth, loss)

    def worst(self, truth: Mapping[str, Any], limit: int = 10) -> list[Mistaken]:
        """The entities that are most wrong, against the true entities of some fragments, and what is wrong in them."""
        with self._session.asking() as (connection, clustering):
            return worst(connection, clustering, truth, whole("limit", limit, 0))

    def reliability(self, truth: Mapping[str, Any], n_bins: int = 10) -> Calibration | None:
        """How probabilities compare with the truth, in bins; None if no pair with known truth was ever unsure."""
        with self._session.asking() as (connection, clustering):
            return reliability(connection, clustering, truth, whole("n_bins", n_bins, 1))

    def diagnose(self, truth: Mapping[str, Any] | None = None, *, n_records: int = 1000) -> Diagnosis:
        """How far the probabilities are to be believed, as far as the fragments themselves can tell.

        A reliability curve without labels (:func:`partita.metrics.reliability_without_labels`), and what is strange
        about the clustering (:func:`partita.metrics.signs_of_collapse`). It takes some seconds an attribute.

        Parameters
        ----------
        truth : mapping, optional
            The true entities of some fragments, by id: then also the slope of truth on evidence
            (:func:`partita.metrics.evidence_slopes`).
        n_records : int
            How many fragments are looked at.
        """
        with self._session.asking() as (connection, clustering):
            return diagnose(connection, clustering, truth, whole("n_records", n_records, 2))

    def export(
        self,
        path: str | PathLike[str],
        what: str = "entities",
        *,
        format: str | None = None,
        samples: int = 100,
    ) -> int:
        """Write what is known to a file; returns how many rows it has.

        Parameters
        ----------
        path : path
            "-" is standard output.
        what : {"entities", "fragments", "ftm", "samples"}
            Entities with their properties; fragments with their entities; entities in the manner of
            FollowTheMoney; clusterings drawn from the posterior.
        format : {"jsonl", "csv", "parquet"}, optional
            By the suffix of the path, unless given.
        samples : int
            How many clusterings to draw.
        """
        from partita.kb.queries.export import export  # which needs DuckDB

        return export(self._session, path, what, format, samples)
