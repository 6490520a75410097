"""Partita: online Bayesian clustering that says how sure it is."""
