"""Commands that change what a knowledge base holds: build, add, remove, refine, relearn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from partita.cli import arguments as args
from partita.cli.checking import Label, Truth, read_truth
from partita.cli.columns import Watch
from partita.cli.input import Input
from partita.cli.opening import PARTICLES, new_or_opened, opened, opened_or_nothing, read_schema
from partita.cli.output import answer, answered, note, print_json, refuse, refusing
from partita.cli.progress import watching
from partita.cli.syncing import check_goes_with_sync, details, print_dry_run, sync_all
from partita.terminal.text import added_in_words, changes_in_words, listed, so_many

if TYPE_CHECKING:
    from partita.kb import KnowledgeBase

BATCH = 500
SWEEPS = 2

Output = Annotated[
    str,
    typer.Option("--output", "-o", metavar="KB", help="The knowledge base: a file, or a postgresql:// URL."),
]
Particles = Annotated[
    int | None,
    typer.Option(
        min=1, help=f"Clusterings kept of each subproblem; {PARTICLES} unless given.", show_default=False
    ),
]
Model = Annotated[
    str | None,
    typer.Option(
        help="What to cluster with: record, which learns how attributes vary (the default); jsonlm, a "
        "language model; or a file of weights from partita train jsonlm.",
        show_default=False,
    ),
]


@refusing
def build(
    data: args.Data,
    output: Output,
    schema: Annotated[
        Path | None,
        typer.Option(help="Which attributes there are, as TOML; inferred unless given.", show_default=False),
    ] = None,
    id: args.Id = None,
    no_id: args.NoId = False,
    source: args.Source = None,
    source_name: args.SourceName = None,
    ignore: args.Ignore = [],  # noqa: B006
    format: args.InputFormat = None,
    encoding: args.Encoding = None,
    sheet: args.Sheet = None,
    particles: Particles = None,
    exact: Annotated[
        bool, typer.Option("--exact", help="Compare with all entities, not with those that share a word.")
    ] = False,
    model: Model = None,
    name: args.Name = None,
    refine: Annotated[
        int, typer.Option(min=0, help="How often to look again, at the end, at what has come in.")
    ] = SWEEPS,
    batch: args.Batch = BATCH,
    bulk: Annotated[
        bool,
        typer.Option(
            "--bulk", help="Take all of it in at once, on all cores or --jobs: for a new knowledge base."
        ),
    ] = False,
    jobs: args.Jobs = None,
    skip_empty: args.SkipEmpty = False,
    sync: args.Sync = False,
    dry_run: args.DryRun = False,
    yes: args.SyncYes = False,
    diagnostics: args.Diagnostics = False,
    json: args.Json = False,
    quiet: args.Quiet = False,
) -> None:
    """Build a knowledge base from files of fragments or records.

    If it is there already, the data are added to it: run an interrupted build again to go on.
    """
    check_goes_with_sync(sync, dry_run, yes)
    if bulk and sync:
        raise typer.BadParameter("--bulk and --sync do not go together: leave --sync out of a first build")
    given = Input(data, id, no_id, source, ignore, format, skip_empty, encoding, sheet, source_name)
    fragments = given.fragments(reader := given.reader())
    if dry_run:
        with opened_or_nothing(output) as base:
            print_dry_run(output, *sync_all(base, given, fragments, reader, dry_run, yes), json)
        return
    with new_or_opened(output, schema, particles, exact, model, name) as base, watched(base, given):
        remember_inputs(base, given)
        more: dict[str, Any] = {}
        watch = Watch(base, fragments, reader, given.is_one_table())
        if sync:
            done, synced = sync_all(base, given, watch.fragments, reader, dry_run, yes, refine)
            more = details(synced, dry_run)
        else:
            done = add_all(base, given, watch.fragments, reader, batch, refine, bulk, jobs)
        more |= watch.report()
        if refine:
            base.finish(n_jobs=-1 if bulk and jobs is None else jobs)
        stats = base.stats()
        report = {"knowledge_base": output, **done, **more, "entities": stats["entities"]}
        report |= {"warnings": warned(base)} | diagnosed(base, diagnostics, json)
    if json:
        print_json(report)
    else:
        held = so_many(stats["fragments"], "fragment", "fragments")
        answer(f"{output}: {added_in_words(done)}.")
        answer(f"{held} of {entities_in_words(stats['entities'])}. See: partita entities {output}")


@refusing
def add(
    kb: args.Base,
    data: args.Data,
    id: args.Id = None,
    no_id: args.NoId = False,
    source: args.Source = None,
    source_name: args.SourceName = None,
    ignore: args.Ignore = [],  # noqa: B006
    format: args.InputFormat = None,
    encoding: args.Encoding = None,
    sheet: args.Sheet = None,
    batch: args.Batch = BATCH,
    skip_empty: args.SkipEmpty = False,
    sync: args.Sync = False,
    dry_run: args.DryRun = False,
    yes: args.SyncYes = False,
    diagnostics: args.Diagnostics = False,
    json: args.Json = False,
    quiet: args.Quiet = False,
) -> None:
    """Add fragments or records to a knowledge base.

    A row whose id is known is passed over if it says the same, else it replaces the one before.
    """
    check_goes_with_sync(sync, dry_run, yes)
    given = Input(data, id, no_id, source, ignore, format, skip_empty, encoding, sheet, source_name)
    with opened(kb) as base, watched(base, given):
        fragments = given.fragments(reader := given.reader())
        if not dry_run:
            remember_inputs(base, given)
        before = base.stats()["events"]
        more: dict[str, Any] = {}
        watch = Watch(base, fragments, reader, given.is_one_table())
        if sync:
            done, synced = sync_all(base, given, watch.fragments, reader, dry_run, yes)
            if dry_run:
                print_dry_run(kb, done, synced, json)
                return
            more = details(synced, dry_run)
        else:
            done = add_all(base, given, watch.fragments, reader, batch)
        more |= watch.report()
        changes = counted(base, before)
        entities = base.stats()["entities"]
        more |= diagnosed(base, diagnostics, json)
    if json:
        print_json({**done, **more, "entities": entities, "events": changes})
    else:
        answer(f"{kb}: {added_in_words(done)}; {changes_in_words(changes)}. {entities_in_words(entities)}.")


@refusing
def remove(
    kb: args.Base,
    ids: Annotated[list[str], typer.Argument(metavar="ID...", help="Fragments.", show_default=False)],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    json: args.Json = False,
) -> None:
    """Remove fragments for good, as if they had never come."""
    with opened(kb) as base:
        ids = list(dict.fromkeys(ids))
        for id in ids:
            check_is_fragment(base, id)
        what = f"fragment {ids[0]!r}" if len(ids) == 1 else f"{len(ids)} fragments"
        if not yes and answered(f"Remove {what} from {kb} and erase the contents? [y/N]") not in ("y", "yes"):
            refuse("nothing was removed; --yes removes without asking")
        before = base.stats()["events"]
        base.remove(*ids)
        changes = counted(base, before)
    if json:
        print_json({"removed": ids, "events": changes})
    else:
        typer.echo(f"Removed {what}; {changes_in_words(changes)}.")


@refusing
def refine(
    kb: args.Base,
    sweeps: Annotated[int, typer.Option(min=1, help="How often.")] = 1,
    jobs: args.Jobs = None,
    diagnostics: args.Diagnostics = False,
    json: args.Json = False,
    quiet: args.Quiet = False,
) -> None:
    """Look again at everything, in hindsight; never makes it worse."""
    with opened(kb) as base, watched(base):
        before = base.stats()["events"]
        base.refine(sweeps, n_jobs=jobs)
        changes, entities = counted(base, before), base.stats()["entities"]
        more = diagnosed(base, diagnostics, json)
    if json:
        print_json({"sweeps": sweeps, "entities": entities, "events": changes, **more})
    else:
        answer(f"Refined; {changes_in_words(changes)}. {entities_in_words(entities)}.")


@refusing
def relearn(
    kb: args.Base,
    schema: Annotated[
        Path | None, typer.Option(help="Another schema, as TOML; see partita schema.", show_default=False)
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            help="Another model: record, jsonlm, or a file of weights; the one it has unless given.",
            show_default=False,
        ),
    ] = None,
    name: args.Name = None,
    labels: Truth = None,
    id: args.Id = None,
    label: Label = None,
    format: args.InputFormat = None,
    encoding: args.Encoding = None,
    sheet: args.Sheet = None,
    no_labels: Annotated[
        bool, typer.Option("--no-labels", help="Forget the labels that were given before.")
    ] = False,
    json: args.Json = False,
    quiet: args.Quiet = False,
) -> None:
    """Learn from all fragments how attributes vary, and cluster them again; entities keep their ids.

    What was judged of fragments teaches, and so do known matches (--labels), which are kept for the next time. These
    teach and do not bind: confirm and separate say what must hold.
    """
    if labels is not None and no_labels:
        raise typer.BadParameter("--labels and --no-labels do not go together")
    with opened(kb) as base:
        known = (
            {}
            if no_labels
            else None
            if labels is None
            else read_truth(labels, id, label, format, encoding, sheet)
        )
        new = None if schema is None else read_schema(schema)
        report = relearn_all(base, new, model, name, known)
    print_relearnt(report, json)


# ---------------------------------------------------------------------- the work


def add_all(
    base: KnowledgeBase,
    given: Input,
    fragments: Any,
    reader: Any,
    batch: int,
    sweeps: int = 0,
    bulk: bool = False,
    jobs: int | None = None,
) -> dict[str, int]:
    """Add fragments, which are to be refined by so many sweeps, and say how many."""

    def between(done: int) -> None:
        if done >= batch:  # there may be more
            given.count_if_wanted()

    before = by_source_of(base)
    if bulk:
        done = base.add(fragments, sweeps=sweeps, bulk=True, n_jobs=jobs)
    else:
        done = base.add(fragments, batch=batch, progress=between, sweeps=sweeps)
    note_replaced(before - by_source_of(base))
    return {**done._asdict(), "skipped": reader.skipped, "repeated": reader.repeated}


def by_source_of(base: KnowledgeBase) -> Counter[str | None]:
    """How many fragments there are of each source."""
    from partita.kb.store.fragments import by_source

    with base.store.reading() as connection:
        return by_source(connection)


def note_replaced(fewer: Counter[str | None]) -> None:
    """Say that sources have fewer fragments, which is so where rows of other sources have their ids."""
    if fewer:
        whose = listed(["no source" if source is None else repr(source) for source in fewer])
        note(
            f"Warning: {so_many(fewer.total(), 'fragment', 'fragments')} of {whose} replaced by rows of another source "
            "with the same ids; if these are about something else, give each source ids of its own."
        )


def remember_inputs(base: KnowledgeBase, given: Input) -> None:
    """Let nothing be written over the files that a knowledge base is made from."""
    from partita.kb.inputs import remember

    remember(base.store, given.paths)


@contextmanager
def watched(base: KnowledgeBase, given: Input | None = None) -> Iterator[None]:
    """Show how far a knowledge base has come with what is done to it."""
    count = {} if given is None else {"adding": given.known_count, "reading": given.count}
    with watching(count) as watch:
        base.watch(watch)
        yield


def relearn_all(
    base: KnowledgeBase,
    schema: str | None,
    model: str | None = None,
    name: str | None = None,
    labels: dict[str, str] | None = None,
) -> dict[str, Any]:
    """Relearn, and say what came of it."""
    stats = base.stats()
    if not stats["fragments"]:
        raise ValueError("the knowledge base is empty: there is nothing to learn from")
    with watched(base):
        taught = base.relearn(schema, model=model, name=name, labels=labels)
    changes = {"entities": base.stats()["entities"], "events": counted(base, stats["events"])}
    return {**taught._asdict(), **changes, "warnings": warned(base)}


def warned(base: KnowledgeBase) -> list[dict[str, str]]:
    """Say if one entity holds so much that learning has probably collapsed; for JSON, what was said."""
    from partita.metrics.collapse import one_large_cluster

    largest = next(base.entities(limit=1), None)
    sign = largest and one_large_cluster(len(largest.fragments), base.stats()["fragments"])
    if not sign:
        return []
    note(f"Warning: {sign.message}; {sign.advice}.")
    return [sign._asdict()]


def entities_in_words(n: int) -> str:
    """How many entities there are."""
    return so_many(n, "entity", "entities")


def print_relearnt(report: dict[str, Any], json: bool) -> None:
    """What relearning has done."""
    if json:
        print_json(report)
    else:
        changes = changes_in_words(report["events"])
        answer(f"Learnt anew{teachers_in_words(report)}; {changes}. {entities_in_words(report['entities'])}.")


def teachers_in_words(report: dict[str, Any]) -> str:
    """What was learnt from beside what fragments say, and which labels could not be used."""
    judgements, labels, unknown = (report.get(name, 0) for name in ("judgements", "labels", "unknown"))
    parts = [f"{judgements:,} judgement{'s' if judgements > 1 else ''}"] if judgements else []
    parts += [f"{labels:,} known match{'es' if labels > 1 else ''}"] if labels else []
    beside = (
        f" ({unknown:,} labelled id{' is' if unknown == 1 else 's are'} of no fragment)" if unknown else ""
    )
    return (f" with {' and '.join(parts)}" if parts else "") + beside


def diagnosed(base: KnowledgeBase, wanted: bool, json: bool) -> dict[str, Any]:
    """What the sampler did, if that is asked for: for JSON, or on standard error."""
    done = base.diagnostics if wanted else None
    if done is None:
        return {}
    if not json:
        typer.echo(done, err=True)
    return {"diagnostics": done._asdict()}


def check_is_fragment(base: KnowledgeBase, id: str) -> None:
    """KeyError unless there is such a fragment; of an entity it says which it has."""
    try:
        base.fragment(id)
    except KeyError:
        try:
            held = base.entity(id).fragments
        except KeyError:
            held = []
        if not held:
            raise
        listed = ", ".join(held[:5]) + (", …" if len(held) > 5 else "")
        raise KeyError(f"{id} is an entity; what can be removed are its fragments: {listed}") from None


def counted(base: KnowledgeBase, since: int) -> dict[str, int]:
    """How many events there were of each kind, after one."""
    return dict(Counter(event.kind for event in base.events(since=since)))
