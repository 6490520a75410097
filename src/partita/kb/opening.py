"""Opening a knowledge base, or beginning one."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike

from partita.kb.knowledge_base import KnowledgeBase
from partita.models.records.record import Record


def open(
    target: str | PathLike[str],
    *,
    schema: str | Record | None = None,
    n_particles: int = 20,
    exact: bool = False,
    create: bool = True,
    model: str | None = None,
    name: str | Sequence[str] | None = None,
) -> KnowledgeBase:
    """Open a knowledge base, or begin one.

    Parameters
    ----------
    target : path or str
        A SQLite file, or the URL of a PostgreSQL database.
    schema : str or Record, optional
        Of a new one: which attributes there are and how they are compared, as TOML. Without, it is inferred
        from the fragments.
    n_particles : int
        Of a new one: how many clusterings to keep of each subproblem.
    exact : bool
        Of a new one: compare a fragment with all entities, not with those that share a word or value.
    create : bool
        Whether to begin one where there is none.
    model : str, optional
        Of a new one: "record", which learns how attributes vary and is the default; "jsonlm", the language
        model that comes with Partita (extra ``neural``), with records to propose what it is asked; or a file
        of weights (``*.safetensors``) of a language model of your own. Later it need not be given.
    name : str or sequence of str, optional
        Of a new one: the attributes that make an entity's name together, such as "first_name last_name"; else
        those are chosen that identify entities best.

    Examples
    --------
    >>> import partita.kb, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> kb = partita.kb.open(folder.name + "/people.db")
    >>> kb.add([{"id": "a", "name": "Ada Lovelace", "born": "1815-12-10", "field": "mathematics"},
    ...         {"id": "b", "name": "Charles Babbage", "field": "engines"},
    ...         {"id": "c", "name": "Ada Lovelace", "born": "1815-12-10", "field": "mathematics"}])
    Added(added=3, updated=0, unchanged=0)
    >>> kb.entity_of("a").fragments
    ['a', 'c']
    >>> kb.close(); folder.cleanup()
    """
    return KnowledgeBase(
        target,
        schema=schema,
        n_particles=n_particles,
        exact=exact,
        create=create,
        model=model,
        name=name,
    )
