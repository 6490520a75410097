"""The knowledge base: fragments in, entities out, durable, explainable, correctable."""

from partita.kb.knowledge_base import Added, KnowledgeBase, open
from partita.kb.store.database import StoreError

__all__ = ["Added", "KnowledgeBase", "StoreError", "open"]
