"""The knowledge base: fragments in, entities out, durable, explainable, correctable."""

from partita.kb.ingest import Added
from partita.kb.knowledge_base import KnowledgeBase
from partita.kb.opening import open
from partita.kb.store.database import StoreError

__all__ = ["Added", "KnowledgeBase", "StoreError", "open"]
