"""What ``--sync`` does, for the commands build and add: look, do it, and say what was done."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from partita.cli.input import Input
from partita.cli.output import answer, note, print_json
from partita.terminal.text import added_in_words

if TYPE_CHECKING:
    from partita.kb import KnowledgeBase
    from partita.kb.syncing import Synced


def check_goes_with_sync(sync: bool, dry_run: bool, yes: bool) -> None:
    """Raise ValueError for options that mean nothing without --sync."""
    for given, name in ((dry_run, "--dry-run"), (yes, "--yes")):
        if given and not sync:
            raise ValueError(f"{name} goes with --sync")


def sync_all(
    base: KnowledgeBase,
    given: Input,
    fragments: Any,
    reader: Any,
    dry_run: bool,
    yes: bool,
    sweeps: int = 0,
) -> tuple[dict[str, int], Synced]:
    """Let the data be the whole truth of their sources; how many fragments that adds, and so on, and what it means.

    What comes in is to be refined by so many sweeps.
    """
    from partita.kb.syncing import TooMuchGone, most_of

    try:
        synced = base.sync(fragments, dry_run=dry_run, confirmed=yes, sweeps=sweeps)
    except TooMuchGone as error:
        note_no_source(error.plan)
        doubt = (
            "does each source have ids of its own (--id)?"
            if error.plan.excessive[0].taken
            else "is the file whole?"
        )
        raise ValueError(
            f"{', '.join(given.paths)}: {error}, so nothing was changed; {doubt} --dry-run shows what would be done, "
            "--yes does it"
        ) from None
    note_no_source(synced)
    if dry_run and not yes:
        for change in synced.excessive:
            note(f"Note: {most_of(change)}: it takes --yes.")
    return {**synced.counts, "skipped": reader.skipped, "repeated": reader.repeated}, synced


def note_no_source(plan: Synced) -> None:
    """Say what it means to have no source, where fragments without one go because of that."""
    if any(change.source is None and change.removed for change in plan.sources):
        note(
            "Note: rows without a source are taken for the whole truth of all fragments without one; --source-name "
            "NAME keeps files apart."
        )


def details(synced: Synced, dry_run: bool) -> dict[str, Any]:
    """What a sync means to fragments, sources and entities, for JSON."""
    return {
        "dry_run": dry_run,
        "fragments": {"added": synced.added, "updated": synced.updated, "removed": synced.removed},
        "sources": [change.as_dict() for change in synced.sources],
        "touched": [change.as_dict() for change in synced.entities],
    }


def print_dry_run(kb: str, done: dict[str, int], synced: Synced, json: bool) -> None:
    """What a sync would do."""
    if json:
        print_json({**done, **details(synced, True)})
        return
    from partita.terminal.syncing import meaning

    answer(f"{kb} would have {added_in_words(done)}.")
    for line in meaning(synced):
        answer(line)
