"""Calibrate the language model on entities that it has not learnt from, and write the file that is shipped.

    python -m benchmarks.networks.calibrate_jsonlm FOLDER/jsonlm.safetensors kb1k/fragments.jsonl OUTPUT

The paper tunes the likelihood's scale on a labelled validation set of confusable entities. Here it is that
part of kb1k which its field ``split`` calls dev: groups of entities that share a name, none of them in
kb_train, in kb50 or in kb200.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

from partita.neural.jsonlm import JsonLM


def validation(path: Path, n: int) -> tuple[list[dict[str, Any]], list[str]]:
    """At least n fragments of whole groups, as far as there are so many, in a random order."""
    with path.open(encoding="utf-8") as file:
        rows = [row for row in map(json.loads, file) if row["split"] == "dev"]
    rng = np.random.default_rng(0)
    chosen: list[dict[str, Any]] = []
    for group in rng.permutation(sorted({row["group"] for row in rows})).tolist():
        if len(chosen) < n:
            chosen += [row for row in rows if row["group"] == group]
    rng.shuffle(chosen)
    return [row["properties"] for row in chosen], [row["entity_id"] for row in chosen]


def main() -> None:
    """Calibrate and save."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("weights", type=Path)
    parser.add_argument("data", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--fragments", type=int, default=1_000)
    parser.add_argument("--alternatives", type=int, default=10)
    given = parser.parse_args()
    fragments, labels = validation(given.data, given.fragments)
    fitted = JsonLM.load(given.weights).calibrate(fragments, labels, n_alternatives=given.alternatives)
    print(f"{len(fragments)} fragments of {len(set(labels))} entities: temperature {fitted.temperature!r}, "
          f"offset {fitted.offset!r}, with records {fitted.pool}")  # fmt: skip
    fitted.save(given.output)


if __name__ == "__main__":
    main()
