"""Train the language model that Partita ships, on an accelerator, in minutes.

    python experiments/train_jsonlm.py FOLDER kb_train/fragments.jsonl.gz:6 geo_train/fragments.jsonl.gz:1

Each file of labelled fragments is followed by how often an entity is seen in an epoch. The folder receives a
checkpoint, the curves, and jsonlm.safetensors, not calibrated yet (experiments/calibrate_jsonlm.py).
"""

from __future__ import annotations

import argparse
import gzip
import json
import time
from pathlib import Path
from typing import Any

from partita.neural.jsonlm import Corpus, learnt


def read(path: Path) -> tuple[list[dict[str, Any]], list[str]]:
    """Fragments and the entities they are of."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    return [row["properties"] for row in rows], [row["entity_id"] for row in rows]


def main() -> None:
    """Train for a given number of steps, or of minutes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("corpora", nargs="+")
    parser.add_argument("--steps", type=int)
    parser.add_argument("--minutes", type=float, help="instead of steps: as many as fit")
    parser.add_argument("--rate", type=float, default=1e-3)
    given = parser.parse_args()
    corpora = []
    for corpus in given.corpora:
        path, repeats = corpus.rsplit(":", 1)
        corpora.append(Corpus(*read(Path(path)), int(repeats)))
    steps = given.steps
    if given.minutes:
        times: list[float] = []
        learnt(corpora, steps=240, every=20, progress=lambda step, figures: times.append(time.perf_counter()))
        a_step = (times[-1] - times[-6]) / 100
        steps = int(60 * given.minutes / a_step)
        print(f"{1000 * a_step:.1f} ms a step, validation included: {steps} steps", flush=True)

    def report(step: int, figures: dict[str, float]) -> None:
        if step == figures.get("step"):
            print({name: round(value, 4) for name, value in figures.items()}, flush=True)

    model = learnt(
        corpora, folder=given.folder, steps=steps, rate=given.rate, every=max(steps // 25, 1), progress=report
    )
    model.save(given.folder / "jsonlm.safetensors")
    print(model)


if __name__ == "__main__":
    main()
