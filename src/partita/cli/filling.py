"""Commands that change what a knowledge base holds: build, add, remove, refine, relearn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from partita.cli import arguments as args
from partita.cli.input import Input
from partita.cli.session import (
    DATA,
    answered,
    check_is_store,
    note,
    opened,
    print_json,
    progress,
    refuse,
    refusing,
)

if TYPE_CHECKING:
    from partita.kb import KnowledgeBase

BATCH = 500
SWEEPS = 2
PARTICLES = 20


@refusing
def build(
    data: args.Data,
    output: Annotated[
        str,
        typer.Option(
            "--output", "-o", metavar="KB", help="The knowledge base: a file, or a postgresql:// URL."
        ),
    ],
    schema: Annotated[
        Path | None,
        typer.Option(help="Which attributes there are, as TOML; inferred unless given.", show_default=False),
    ] = None,
    id: args.Id = None,
    no_id: args.NoId = False,
    source: args.Source = None,
    ignore: args.Ignore = [],  # noqa: B006
    format: args.InputFormat = None,
    particles: Annotated[
        int | None,
        typer.Option(
            min=1, help=f"Clusterings kept of each subproblem; {PARTICLES} unless given.", show_default=False
        ),
    ] = None,
    exact: Annotated[
        bool, typer.Option("--exact", help="Compare with all entities, not with those that share a word.")
    ] = False,
    model: Annotated[
        str | None,
        typer.Option(
            help="What to cluster with: record, which learns how attributes vary (the default); jsonlm, a "
            "language model; or a file of weights from partita train jsonlm.",
            show_default=False,
        ),
    ] = None,
    refine: Annotated[
        int, typer.Option(min=0, help="How often to look again at everything at the end.")
    ] = SWEEPS,
    batch: args.Batch = BATCH,
    skip_empty: args.SkipEmpty = False,
    json: args.Json = False,
) -> None:
    """Build a knowledge base from files of fragments or records.

    If it is there already, the data are added to it: run an interrupted build again to go on.
    """
    given = Input(data, id, no_id, source, ignore, format, skip_empty)
    fragments = given.fragments(reader := given.reader())
    with begun(output, schema, particles, exact, model) as base:
        done = add_all(base, given, fragments, reader, batch)
        refine_all(base, refine)
        stats = base.stats()
        report = {"knowledge_base": output, **done, "entities": stats["entities"]}
    if json:
        print_json(report)
        return
    typer.echo(f"{output}: {added_in_words(done)}.")
    typer.echo(
        f"{stats['fragments']:,} fragments of {stats['entities']:,} entities. See: partita entities {output}"
    )


@refusing
def add(
    kb: args.Base,
    data: args.Data,
    id: args.Id = None,
    no_id: args.NoId = False,
    source: args.Source = None,
    ignore: args.Ignore = [],  # noqa: B006
    format: args.InputFormat = None,
    batch: args.Batch = BATCH,
    skip_empty: args.SkipEmpty = False,
    json: args.Json = False,
) -> None:
    """Add fragments or records to a knowledge base.

    A row whose id is known is passed over if it says the same, else it replaces the one before.
    """
    given = Input(data, id, no_id, source, ignore, format, skip_empty)
    with opened(kb) as base:
        fragments = given.fragments(reader := given.reader())
        before = base.stats()["events"]
        done = add_all(base, given, fragments, reader, batch)
        changes = counted(base, before)
        entities = base.stats()["entities"]
    if json:
        print_json({**done, "entities": entities, "events": changes})
    else:
        typer.echo(f"{kb}: {added_in_words(done)}; {in_words(changes)}. {entities:,} entities.")


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
        typer.echo(f"Removed {what}; {in_words(changes)}.")


@refusing
def refine(
    kb: args.Base,
    sweeps: Annotated[int, typer.Option(min=1, help="How often.")] = 1,
    json: args.Json = False,
) -> None:
    """Look again at everything, in hindsight; never makes it worse."""
    with opened(kb) as base:
        before = base.stats()["events"]
        refine_all(base, sweeps)
        changes, entities = counted(base, before), base.stats()["entities"]
    if json:
        print_json({"sweeps": sweeps, "entities": entities, "events": changes})
    else:
        typer.echo(f"Refined; {in_words(changes)}. {entities:,} entities.")


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
    json: args.Json = False,
) -> None:
    """Learn from all fragments how attributes vary, and cluster them again; entities keep their ids."""
    with opened(kb) as base:
        report = relearn_all(base, None if schema is None else read_schema(schema), model)
    print_relearnt(report, json)


# ---------------------------------------------------------------------- the work


@contextmanager
def begun(
    target: str, schema: Path | None, particles: int | None, exact: bool, model: str | None
) -> Iterator[KnowledgeBase]:
    """A knowledge base, new or not; a new file that nothing came into is not left behind."""
    text = None if schema is None else read_schema(schema)
    if is_there(target):
        with opened(target) as base:
            note(f"Note: {target} is there already: adding to it.")
            check_is_same(base, target, text, particles, model)
            yield base
        return
    from partita import kb

    base = kb.open(target, schema=text, n_particles=particles or PARTICLES, exact=exact, model=model)
    try:
        with base:
            yield base
    except BaseException:
        if "://" not in target and is_empty(target):
            for suffix in ("", "-wal", "-shm"):
                Path(target + suffix).unlink(missing_ok=True)
        raise


def is_there(target: str) -> bool:
    """Whether there is a knowledge base to go on with; ValueError if there is something else."""
    if "://" in target:
        from partita import kb

        try:
            kb.open(target, create=False).close()
        except kb.StoreError as error:
            if "there is no knowledge base" not in str(error):
                raise
            return False
        return True
    if not Path(target).exists():
        if Path(target).suffix.lower() in DATA:
            raise ValueError(f"{target} is a name for data: give the knowledge base another, such as kb.db")
        return False
    check_is_store(target)
    return Path(target).stat().st_size > 0 or Path(target).is_dir()


def is_empty(target: str) -> bool:
    """Whether a knowledge base holds nothing at all."""
    from partita import kb

    try:
        with kb.open(target, create=False) as base:
            stats = base.stats()
            return bool(stats["fragments"] == 0 and stats["events"] == 0)
    except kb.StoreError:
        return False


def check_is_same(
    base: KnowledgeBase, target: str, schema: str | None, particles: int | None, model: str | None
) -> None:
    """Raise ValueError if a knowledge base was begun otherwise than is asked for now."""
    from partita.kb.language import RECORD, model_named

    kept = base.settings
    own = kept.get("model", RECORD)
    if model is not None and model_named(model) != own:
        raise ValueError(
            f"{target} clusters with the model {own}: leave --model out, or change it with "
            f"partita relearn {target} --model {model}"
        )
    if schema is not None and schema != kept["schema"]:
        raise ValueError(
            f"{target} has another schema: change it with partita relearn {target} --schema FILE"
        )
    if particles is not None and particles != kept["n_particles"]:
        raise ValueError(
            f"{target} was begun with {kept['n_particles']} particles, which cannot be changed; leave "
            "--particles out, or build another"
        )


def read_schema(path: Path) -> str:
    """A schema's file, as TOML that the model writes; ValueError if it is none."""
    from partita.models.records.record import Record

    try:
        return Record.from_toml(path.read_text(encoding="utf-8")).to_toml()
    except ValueError as error:  # TOML that is none, and text that is not UTF-8, too
        raise ValueError(f"{path} is not a schema: {error}") from None


def add_all(base: KnowledgeBase, given: Input, fragments: Any, reader: Any, batch: int) -> dict[str, int]:
    """Add fragments, and say how many."""
    total = given.count()
    what = "adding" if base.settings["learnt_from"] else "learning, then adding"
    with progress(what, total) as report:
        done = base.add(
            fragments,
            batch=batch,
            progress=lambda n: report(n + reader.skipped + reader.repeated),
        )
    return {**done._asdict(), "skipped": reader.skipped, "repeated": reader.repeated}


def refine_all(base: KnowledgeBase, sweeps: int) -> None:
    """Refine, with a bar."""
    with progress("refining", sweeps) as report:
        base.refine(sweeps, progress=report)


def relearn_all(base: KnowledgeBase, schema: str | None, model: str | None = None) -> dict[str, Any]:
    """Relearn, and say what came of it."""
    stats = base.stats()
    if not stats["fragments"]:
        raise ValueError("the knowledge base is empty: there is nothing to learn from")
    with progress("learning", None):
        base.relearn(schema, model=model)
    return {"entities": base.stats()["entities"], "events": counted(base, stats["events"])}


def print_relearnt(report: dict[str, Any], json: bool) -> None:
    """What relearning has done."""
    if json:
        print_json(report)
    else:
        typer.echo(f"Learnt anew; {in_words(report['events'])}. {report['entities']:,} entities.")


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


# ---------------------------------------------------------------------- what happened, in words

WORDS = {
    "created": ("entity created", "entities created"),
    "joined": ("fragment joined an entity", "fragments joined entities"),
    "moved": ("fragment moved", "fragments moved"),
    "merged": ("merge", "merges"),
    "split": ("split", "splits"),
    "left": ("fragment left its entity", "fragments left their entities"),
    "emptied": ("entity ended", "entities ended"),
}


def counted(base: KnowledgeBase, since: int) -> dict[str, int]:
    """How many events there were of each kind, after one."""
    return dict(Counter(event.kind for event in base.events(since=since)))


def in_words(changes: dict[str, int]) -> str:
    """The number of events of each kind, those that users care for."""
    parts = [
        f"{changes[kind]:,} {plural if changes[kind] > 1 else single}"
        for kind, (single, plural) in WORDS.items()
        if changes.get(kind)
    ]
    return ", ".join(parts) or "no entity changed"


def added_in_words(done: dict[str, int]) -> str:
    """How many fragments were added, updated and so on."""
    said = {"added": "added", "updated": "updated", "unchanged": "unchanged"}
    said |= {"repeated": "repeated rows passed over", "skipped": "empty rows skipped"}
    parts = [f"{done[name]:,} {text}" for name, text in said.items() if done[name]]
    return ", ".join(parts) or "nothing to add"
