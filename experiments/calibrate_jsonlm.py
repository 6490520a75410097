"""Calibrate the language model on entities that it has not learnt from, and write the file that is shipped.

    python experiments/calibrate_jsonlm.py FOLDER/jsonlm.safetensors kb_train/fragments.jsonl.gz OUTPUT

The paper tunes the likelihood's scale on a labelled validation set of confusable entities. Those of kb_train
share no names, so held-out ones are made to: in groups of two to five, four in ten fragments are known by a
word of one of the group's names, as are those of kb50.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from train_jsonlm import read

import partita as pt
from partita._labels import label_codes
from partita.neural.jsonlm import JsonLM, held_out_codes

SHARE = 0.4  # of fragments whose names others have, too


def confusable(
    fragments: list[dict[str, Any]], labels: list[str], n: int, seed: int = 0
) -> tuple[list[dict[str, Any]], list[int]]:
    """Some n fragments of held-out entities that share a name within small groups, in a random order."""
    rng = np.random.default_rng(seed)
    codes = label_codes("labels", labels)
    of_entity: dict[int, list[dict[str, Any]]] = {}
    for code, fragment in zip(codes.tolist(), fragments, strict=True):
        of_entity.setdefault(code, []).append(fragment)
    entities = rng.permutation(held_out_codes(codes.max() + 1)).tolist()
    found: list[dict[str, Any]] = []
    true: list[int] = []
    while len(found) < n:
        group, entities = np.split(np.array(entities), [rng.integers(2, 6)])
        shared = shared_name([name for e in group for f in of_entity[e] for name in f.get("name", [])], rng)
        for entity in group.tolist():
            for fragment in of_entity[entity]:
                other = {"name": [shared]} if rng.random() < SHARE else {}
                found.append(fragment | other)
                true.append(entity)
    order = rng.permutation(len(found))
    return [found[k] for k in order], [true[k] for k in order]


def shared_name(names: list[str], rng: np.random.Generator) -> str:
    """A word of one of the names, a long one."""
    words = sorted({max(name.split(), key=len) for name in names})
    return str(rng.choice(words))


def main() -> None:
    """Calibrate and save."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("weights", type=Path)
    parser.add_argument("data", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--fragments", type=int, default=1_000)
    parser.add_argument("--alternatives", type=int, default=5)
    given = parser.parse_args()
    everything = read(given.data)
    fragments, labels = confusable(*everything, given.fragments)
    surrogate = pt.Ngram(n=2, attribute="name").fit_prior(fragments, labels)
    model = JsonLM.load(given.weights)
    fitted = model.calibrate(fragments, labels, surrogate, n_alternatives=given.alternatives)
    print(f"{len(fragments)} fragments of {len(set(labels))} entities: temperature {fitted.temperature!r}, "
          f"offset {fitted.offset!r}")  # fmt: skip
    fitted.save(given.output)


if __name__ == "__main__":
    main()
