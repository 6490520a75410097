"""The tables of a knowledge base's store, the same in SQLite and PostgreSQL.

Fragments and events are only ever added to. What a fragment says is kept twice: as it came, in ``fragments``,
and value by value, in ``said``, so that SQL can ask for it; ``words`` finds it by the words in it. A fragment
belongs to an entity from one event to another (``members``), so that any moment can be looked up; the row
without an end is the present. The views ``entity_members`` and ``entity_values`` are what most queries need.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Column,
    Double,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    SmallInteger,
    Table,
    Text,
)

VERSION = 3  # of the tables; ``database.MIGRATIONS`` leads from one to the next

metadata = MetaData()
Number = BigInteger().with_variant(Integer, "sqlite")
Word = Text().with_variant(Text(collation="C"), "postgresql")  # in order of code points, as SQLite has it

about = Table(  # settings and state in one piece each, by name, with a checksum
    "about",
    metadata,
    Column("name", Text, primary_key=True),
    Column("body", LargeBinary, nullable=False),
    Column("checksum", BigInteger, nullable=False),
)

fragments = Table(
    "fragments",
    metadata,
    Column("number", Number, primary_key=True, autoincrement=False),
    Column("id", Text, nullable=False),
    Column("source", Text),
    Column("properties", Text),  # JSON; null when it has been removed
    Column("digest", Text, nullable=False),
    Column("key_codes", LargeBinary, nullable=False),  # by which the sampler finds it, 8 bytes each
    Column(
        "value_numbers", LargeBinary
    ),  # what it says, in ``vocabulary``, 4 bytes each; null if that is not there
    Column("added", Number, nullable=False),  # the event that it came with
    Column("gone", Number),  # the event that it went with: it was removed, or another version came
)
present = fragments.c.gone.is_(None)
Index("fragment_id", fragments.c.id, unique=True, sqlite_where=present, postgresql_where=present)

vocabulary = Table(  # what values that fragments say are compared by; see ``values.KnownValues``
    "vocabulary",
    metadata,
    Column("first", Number, primary_key=True, autoincrement=False),  # the number of the first value
    Column("body", LargeBinary, nullable=False),
    Column("checksum", BigInteger, nullable=False),
)

said = Table(
    "said",
    metadata,
    Column("fragment", Number, nullable=False, index=True),
    Column("attribute", Text, nullable=False),
    Column("value", Text, nullable=False),
)

words = Table(
    "words",
    metadata,
    Column("word", Word, nullable=False),
    Column("fragment", Number, nullable=False, index=True),
)
Index("word_fragment", words.c.word, words.c.fragment)

entities = Table(
    "entities",
    metadata,
    Column("number", Number, primary_key=True, autoincrement=False),
    Column("name", Text),
    Column("size", Integer, nullable=False),
    Column("created", Number, nullable=False),  # the event
    Column("ended", Number),  # the event, if it has no fragments any more
    Column("merged_into", Number),  # where they went, if all went the same way
)

members = Table(
    "members",
    metadata,
    Column("fragment", Number, nullable=False),
    Column("entity", Number, nullable=False),
    Column("since", Number, nullable=False),
    Column("until", Number),
    Column("probability", Double, nullable=False),
)
Index("members_of_entity", members.c.entity)
now = members.c.until.is_(None)
Index("entity_of_fragment", members.c.fragment, unique=True, sqlite_where=now, postgresql_where=now)

events = Table(
    "events",
    metadata,
    Column("number", Number, primary_key=True, autoincrement=False),
    Column("at", Text, nullable=False),  # ISO 8601, UTC
    Column("kind", Text, nullable=False),
    Column("entity", Number),
    Column("other", Number),
    Column("fragment", Text),  # the id of the one that caused it
    Column("fragments", Text),  # JSON: the ids of those that it took from one entity to another
    Column("detail", Text),
)
Index("events_of_entity", events.c.entity)
Index("events_of_other", events.c.other)
Index("events_of_fragment", events.c.fragment)

judgements = Table(
    "judgements",
    metadata,
    Column("number", Number, primary_key=True, autoincrement=False),
    Column("kind", Text, nullable=False),  # confirm, separate, split or unsure
    Column("first", Text, nullable=False),  # what it was said of: fragments or entities
    Column("second", Text, nullable=False),  # split: the fragments that leave, or "by" an attribute
    Column("user", Text, nullable=False),
    Column("at", Text, nullable=False),
    Column("undone_by", Text),
    Column("undone_at", Text),
)

judged = Table(  # the fragments that a judgement is about
    "judged",
    metadata,
    Column("judgement", Number, nullable=False),
    Column("side", Integer, nullable=False),
    Column("place", Integer, nullable=False),  # among those on its side
    Column("fragment", Text, nullable=False),  # its id: the judgement outlives it
)
Index("judged_fragments", judged.c.judgement)
Index("judgements_of_fragment", judged.c.fragment)

undoing = Table(  # what was before a judgement; see ``conditioning.Before``
    "undoing",
    metadata,
    Column("judgement", Number, primary_key=True, autoincrement=False),
    Column("body", LargeBinary, nullable=False),
    Column("checksum", BigInteger, nullable=False),
)

subproblems = Table(  # the sampler's state; see ``clustering.Subproblem``
    "subproblems",
    metadata,
    Column("slot", Number, primary_key=True, autoincrement=False),
    Column("rows", Integer, nullable=False),
    Column("columns", Integer, nullable=False),
    Column("clusters", Integer, nullable=False),
    Column("version", SmallInteger, nullable=False),
    Column("body", LargeBinary, nullable=False),
    Column("checksum", BigInteger, nullable=False),
)

VIEWS = {
    "entity_members": """
        SELECT members.entity, 'E' || members.entity AS entity_id, entities.name,
               fragments.id AS fragment, fragments.source,
               members.probability, fragments.properties
        FROM members
        JOIN entities ON entities.number = members.entity
        JOIN fragments ON fragments.number = members.fragment
        WHERE members.until IS NULL
    """,
    "entity_values": """
        SELECT members.entity, 'E' || members.entity AS entity_id, said.attribute, said.value,
               MAX(members.probability) AS probability, COUNT(*) AS fragments,
               COUNT(DISTINCT fragments.source) AS sources
        FROM members
        JOIN said ON said.fragment = members.fragment
        JOIN fragments ON fragments.number = members.fragment
        WHERE members.until IS NULL
        GROUP BY members.entity, said.attribute, said.value
    """,
}
