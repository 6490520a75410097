"""What is kept where only Spark can write: a table of one row for each thing."""

from __future__ import annotations

from typing import Any

from pyspark.errors import AnalysisException

from partita.bulk.work import Kept


class Far(Kept):
    """What is kept under a path of Spark. Nothing is thrown away there: each run has a folder of its own.

    Parameters
    ----------
    session : SparkSession
    path : str
        As Spark calls it.
    """

    def __init__(self, session: Any, path: str) -> None:
        self.session, self.path = session, path

    def begin(self, digest: str) -> None:
        self.folder = f"{self.path}/{digest}"
        try:
            kept = self.session.read.schema("contents binary, name string").parquet(self.folder)
            self.names = {row["name"] for row in kept.select("name").distinct().collect()}
        except AnalysisException as error:
            if "PATH_NOT_FOUND" not in str(error):
                raise
            self.names = set()

    def write(self, name: str, contents: bytes) -> None:
        frame = self.session.createDataFrame([(bytearray(contents),)], "contents binary")
        frame.coalesce(1).write.mode("overwrite").parquet(f"{self.folder}/name={name}")
        self.names.add(name)

    def read(self, name: str) -> bytes | None:
        if name not in self.names:
            return None
        found = self.session.read.schema("contents binary").parquet(f"{self.folder}/name={name}")
        return bytes(found.collect()[0]["contents"])
