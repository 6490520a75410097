"""What ``partita demo`` and ``partita demo points`` do."""
