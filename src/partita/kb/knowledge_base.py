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
from partita._core.progress import Report
from partita.kb import ingest, judgements, matching
from partita.kb.columns import Readers, comparing_in
from partita.kb.fragments import Fragment
from partita.kb.ingest import Added
from partita.kb.labels import Taught
from partita.kb.loading import load
from partita.kb.queries import answers, posterior
from partita.kb.queries.alternatives import Alternatives, Matrix, alternatives, matrix
from partita.kb.queries.diagnosis import Diagnosis, diagnose
from partita.kb.queries.evaluation import evaluate, reliability
from partita.kb.queries.explain import explain
from partita.kb.queries.golden import Golden, attributes_of, golden, rules_of, sources_of
from partita.kb.queries.match import Match, Matched
from partita.kb.queries.mistakes import Mistaken, worst
from partita.kb.queries.questions import Question, expected_wrong_pairs, questions
from partita.kb.queries.risk import AtRisk, at_risk, foretold
from partita.kb.queries.rows import Row, rows
from partita.kb.queries.search import search
from partita.kb.queries.statistics import stats
from partita.kb.session import open_session
from partita.kb.store.database import Store, get
from partita.kb.store.judgements import standing
from partita.kb.syncing import Synced, sync
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
        name: str | Sequence[str] | None = None,
    ) -> None:
        self._session = open_session(target, schema, n_particles, exact, create, model, name)

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

    def watch(self, report: Report) -> None:
        """Have a function called with how far what takes long has come, such as ``("adding", 500, 2000)``.

        The phases are reading, learning, adding, clustering, refining, removing and writing; how much there is of it
        is None where that is not known. It is called often, and must be quick.
        """
        self._session.report = report

    # ------------------------------------------------------------------ changing

    def add(
        self,
        fragments: Any,
        *,
        batch: int = BATCH,
        progress: Callable[[int], object] = lambda done: None,
        sweeps: int = 0,
        bulk: bool = False,
        n_jobs: int | None = None,
    ) -> Added:
        """Take fragments in; each is durable, and its consequences drawn, when its batch is done.

        A fragment whose id is known already is passed over if it says the same, else it replaces the one
        before. If something is refused, the batches before it are in. The first call also learns the model,
        from all it is given; give it enough to learn from. After that any batching gives the same result.
        After every five fragments what these have touched is refined, at a bounded cost.

        Parameters
        ----------
        fragments : iterable of mappings or Fragments, or a table
            Of pandas, polars, pyarrow, DuckDB, or anything else with Arrow's interface; or mappings
            ``{"properties": {attribute: [values]}, "id": …, "source": …}``, or flat ones. Mappings
            within them are flattened, and have dotted names.
        batch : int
            How many go into one transaction.
        progress : callable
            Called after each batch with the number of fragments done.
        sweeps : int
            Note that what comes in is to be refined by so many sweeps, which :meth:`finish` does.
        bulk : bool
            Take all of it in at once, in one transaction and in blocks, as :meth:`SplitSMC.fit` does with ``n_jobs``:
            much sooner, and for a knowledge base that is empty. What comes later is added to it as ever.
        n_jobs : int, optional
            How many threads share the work of ``bulk``: one a core unless given. The result does not depend on it.
        """
        if bulk:
            added = load(self._session, fragments, n_jobs, sweeps)
            progress(sum(added))
            return added
        if n_jobs is not None:
            raise ValueError(
                "without bulk fragments come one after the other: leave n_jobs out, or say bulk=True"
            )
        return ingest.add(self._session, fragments, batch, progress, sweeps)

    def check(self, fragments: Any) -> list[Fragment]:
        """The fragments that :meth:`add` would take; raises what it would raise, and adds nothing.

        So that they can be added a few at a time without being refused half-way.
        """
        return ingest.checked(self._session, fragments)

    def finish(
        self, *, progress: Callable[[int], object] = lambda done: None, n_jobs: int | None = None
    ) -> int:
        """Do the sweeps of refinement that :meth:`add` has noted, also before an interruption; returns how many.

        Where nothing has come in there are none, and nothing changes at all. ``n_jobs`` as in :meth:`refine`.
        """
        return ingest.finish(self._session, progress, n_jobs)

    def sync(
        self,
        fragments: Any,
        *,
        source: str | None = None,
        dry_run: bool = False,
        confirmed: bool = False,
        sweeps: int = 0,
    ) -> Synced:
        """Take fragments in that are the whole truth of their sources: what a source has no more is removed.

        Fragments that are new are added, those that say something else updated, those of the same source that are
        not among them removed, with their contents, as by :meth:`remove`; in one transaction. Where nothing has
        changed nothing happens. Judgements of a fragment that goes apply again when it comes back.

        Parameters
        ----------
        fragments : iterable of mappings or Fragments, or a DataFrame
            As in :meth:`add`. If they are of several sources, they are the whole truth of each. To have no source
            is to be of one, too. Without any there is nothing to be the truth, and that is refused.
        source : str, optional
            Where all of them are from, whatever they say of it.
        dry_run : bool
            Only say what would be done.
        confirmed : bool
            Whether a source may lose more than half of its fragments, and one that no row is of some of them because
            rows have their ids, which is refused otherwise.
        sweeps : int
            How often to refine what comes in or changes, once :meth:`finish` is called, as in :meth:`add`.

        Returns
        -------
        Synced
            The ids of the fragments added, updated and removed, and what that means to sources and entities.
        """
        return sync(self._session, fragments, source, dry_run, confirmed, sweeps)

    def remove(self, *ids: str) -> None:
        """Forget fragments, as if they had never come; their contents are erased.

        Their entities lose them at once; that they were there is in the events, by their ids.
        """
        ingest.remove(self._session, ids)

    def refine(
        self,
        sweeps: int = 1,
        *,
        progress: Callable[[int], object] = lambda done: None,
        n_jobs: int | None = None,
    ) -> None:
        """Look again at all that is known, in hindsight; never makes the posterior a worse approximation.

        ``n_jobs`` threads share the work, one unless given, and for −1 one a core; the result is the same for
        any number.
        """
        ingest.refine(self._session, sweeps, progress, n_jobs)

    def relearn(
        self,
        schema: str | None = None,
        *,
        model: str | None = None,
        name: str | Sequence[str] | None = None,
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
        name : str or sequence of str, optional
            The attributes that entities are named by from now on, as in :func:`partita.kb.open`; empty: those
            that identify best.
        labels : mapping, optional
            The true entities of some fragments, by id; ``{}`` forgets those that were given before. They teach, now
            and whenever the model is learnt again, and do not bind: what must hold is for :meth:`confirm` and
            :meth:`separate` to say.

        Returns
        -------
        Taught
            How many labels and judgements it was learnt from, and how many ids with a label no fragment has.
        """
        return ingest.relearn(self._session, schema, model, name, labels)

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
        self,
        entity: str,
        fragments: str | Sequence[str] = (),
        *,
        by: str | None = None,
        user: str | None = None,
    ) -> int:
        """Say that an entity is several things; the posterior conditions on it.

        Parameters
        ----------
        entity : str
        fragments : str or sequence of str
            The one, or those, that are of another thing than the rest.
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

    def entities(
        self,
        *,
        sort: str = "size",
        minimum: int = 1,
        where: Mapping[str, Any] | None = None,
        limit: int | None = None,
    ) -> Iterator[answers.Entity]:
        """All entities, or some.

        Parameters
        ----------
        sort : {"size", "sure", "recent", "name"}
            The largest first, of equal ones the oldest; the least sure; those that a fragment came to last; or by
            name.
        minimum : int
            Leave out those with fewer fragments.
        where : mapping from attribute to value, optional
            Only those of which a fragment says so, whatever the case and accents; of a list of values, all.
        limit : int, optional
            How many at most.
        """
        with self.store.reading() as connection:
            yield from answers.entities(connection, minimum, limit, sort, where)

    def rows(self, entity: str) -> list[Row]:
        """An entity's fragments beside one another: where each differs from what most of them say."""
        with self.store.reading() as connection:
            return rows(connection, entity)

    def golden(self, rules: Mapping[str, str] | None = None) -> Iterator[Golden]:
        """All entities with one best value an attribute, the largest first.

        Parameters
        ----------
        rules : mapping, optional
            From attributes to what is best: "probable", the default: what most fragments say, weighed by how surely
            they are of the entity; "recent": what came last, "recent:updated_at": by a date; "longest";
            "source:crm,newsletter": from the first of some sources that says something, else from any.
        """
        with self.store.reading() as connection:
            there = attributes_of(connection), sources_of(connection)
            yield from golden(connection, rules_of(rules or {}, *there))

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

    @property
    def comparing(self) -> Readers:
        """What is compared of the values of each attribute; all of them before anything is learnt."""
        with self.store.reading() as connection:
            return comparing_in(connection)

    # ------------------------------------------------------------------ asking the posterior

    def explain(self, a: str, b: str) -> Any:
        """Why two fragments, or entities, are together or apart: each attribute's evidence in nats.

        Beside the evidence of the groups that are compared is that of the two fragments alone. For an entity
        stands the fragment that is most surely of it.
        """
        with self._session.asking() as (connection, clustering):
            return explain(connection, clustering, a, b)

    def match(self, record: Any, limit: int = 5) -> list[Match]:
        """Where a record would go if it were added: entities, or a new one, the most probable first.

        Nothing is added, and nothing changes. Judgements do not concern a record that is not in yet.

        Parameters
        ----------
        record : mapping or Fragment
            As :meth:`add` takes it. Its id does not matter.
        limit : int
            How many places at most.

        Returns
        -------
        list of Match
            Each with the ``entity``, or "new", its ``name``, the ``probability``, and as ``steps`` the evidence against
            being new, attribute by attribute, in nats. They sum to ``log_odds``.
        """
        [found] = matching.match_all(self._session, [record], limit)
        return found.matches

    def match_all(self, records: Any, limit: int = 5) -> Iterator[Matched]:
        """:meth:`match` for many records, whatever :meth:`add` takes; each is asked for by itself."""
        return matching.match_all(self._session, records, limit)

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

    def at_risk(self, limit: int = 20) -> list[AtRisk]:
        """The entities that most pairs of fragments are expected to be wrong in, by those that are in doubt."""
        with self._session.asking() as (connection, clustering):
            return at_risk(connection, clustering, whole("limit", limit, 0))

    def alternatives(self, entity: str, limit: int = 10) -> Alternatives:
        """What else an entity may be: the clusterings of its fragments, and of those they might be with.

        Parameters
        ----------
        entity : str
        limit : int
            How many clusterings at most, the most probable first.
        """
        with self._session.asking() as (connection, clustering):
            return alternatives(connection, clustering, entity, whole("limit", limit, 1))

    def matrix(self, entity: str, limit: int = 400) -> Matrix:
        """How probably an entity's fragments, and those they might be with, are together, two by two.

        In an order in which what belongs together stands together. ``limit`` is how many fragments at most.
        """
        with self._session.asking() as (connection, clustering):
            return matrix(connection, clustering, entity, whole("limit", limit, 1))

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

    def foretold(self, n_bins: int = 10) -> Calibration | None:
        """How probable it was of what humans have judged since, in bins; None if that is not known of anything.

        A judgement binds, so what counts is what the particles said before it, which are kept until it is undone or
        everything is learnt anew. Humans are asked about what is in doubt: these are no pairs drawn at random.
        """
        with self._session.asking() as (connection, clustering):
            return foretold(connection, clustering, whole("n_bins", n_bins, 1))

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
        rules: Mapping[str, str] | None = None,
        plain: bool = False,
        with_fields: bool = False,
        entities: Sequence[str] = (),
    ) -> int:
        """Write what is known to a file; returns how many rows it has.

        Parameters
        ----------
        path : path
            "-" is standard output.
        what : {"entities", "golden", "fragments", "clusters", "ftm", "samples"}
            Entities with their properties; entities with one best value an attribute, as :meth:`golden`; fragments
            with their entities; the same in columns as Splink names them; entities as FollowTheMoney has them;
            clusterings drawn from the posterior.
        format : {"jsonl", "csv", "tsv", "xlsx", "parquet", "feather"}, optional
            By the suffix of the path, unless given.
        samples : int
            How many clusterings to draw.
        rules : mapping, optional
            Of golden records, as in :meth:`golden`.
        plain : bool
            Whether golden records are only values, without how probable they are and how many fragments agree.
        with_fields : bool
            Whether clusters come with what the fragments say.
        entities : sequence of str
            Ids of the entities that are wanted, or whose fragments are; all of them, if there is none.
        """
        from partita.kb.queries.export import Wanted, export  # which needs DuckDB

        wanted = Wanted(what, samples, rules or {}, plain, with_fields, entities)
        return export(self._session, path, wanted, format)

    def exported(
        self, what: str = "entities", *, format: str = "jsonl", entities: Sequence[str] = ()
    ) -> tuple[Iterator[dict[str, Any]], list[str] | None]:
        """The rows that :meth:`export` writes, one by one, and the order of their columns where rows differ in them."""
        from partita.kb.queries.export import Wanted, columns_wanted, rows_of  # which needs DuckDB

        wanted = Wanted(what, 100, {}, False, False, entities)
        wanted.check()
        return rows_of(self._session, wanted, format), columns_wanted(self._session, wanted, format)
