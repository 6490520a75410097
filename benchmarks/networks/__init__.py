"""How the networks that Partita ships were trained, calibrated and measured: one script for each."""
