"""The knowledge base: fragments in, entities out (DESIGN, section 4)."""
