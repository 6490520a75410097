"""Files of rows: :func:`read` and :func:`write` JSON, CSV, Excel, Parquet and Feather, whole files never in memory.

DuckDB comes with it, so it is imported where a file is read or written, not with the knowledge base.
"""

from partita.kb.io.formats import FORMATS, Row
from partita.kb.io.reading import read
from partita.kb.io.writing import check_can_write, write

__all__ = ["FORMATS", "Row", "check_can_write", "read", "write"]
