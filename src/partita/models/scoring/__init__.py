"""Scoring clusters: one contract, three ways to keep it; :mod:`~partita.models.scoring.scorers` has a model's own."""
