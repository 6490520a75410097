"""Files of rows: :func:`read` and :func:`write` JSON lines, CSV and Parquet, whole files never in memory."""

from partita.kb.io.formats import FORMATS
from partita.kb.io.reading import Row, read
from partita.kb.io.writing import write

__all__ = ["FORMATS", "Row", "read", "write"]
