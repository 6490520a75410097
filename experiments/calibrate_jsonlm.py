"""Calibrate the language model on entities that it has not learnt from, and write the file that is shipped.

    python experiments/calibrate_jsonlm.py FOLDER/jsonlm.safetensors kb_train/fragments.jsonl.gz OUTPUT

The paper tunes the likelihood's scale on a labelled validation set of confusable entities. Few of kb_train
share a name. So held-out entities are taken that have a word of their names in common, in groups of two to
five, and four in ten of their fragments are known by that word alone, as are those of kb50.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from train_jsonlm import read

import partita as pt
from partita._labels import label_codes
from partita.neural.corpus import is_name
from partita.neural.jsonlm import JsonLM, held_out_codes

MOST = 5  # entities that share a name
SHARE = 0.4  # of fragments that are known by it


def confusable(
    fragments: list[dict[str, Any]], labels: list[str], n: int, seed: int = 0
) -> tuple[list[dict[str, Any]], list[int]]:
    """Some n fragments of held-out entities that share a name within small groups, in a random order."""
    rng = np.random.default_rng(seed)
    codes = label_codes("labels", labels)
    held_out = set(held_out_codes(codes.max() + 1).tolist())
    of_entity: dict[int, list[dict[str, Any]]] = {}
    of_word: dict[str, set[int]] = {}
    for code, fragment in zip(codes.tolist(), fragments, strict=True):
        if code in held_out:
            of_entity.setdefault(code, []).append(fragment)
            for name in fragment.get("name", []):
                for word in filter(is_name, name.split()):
                    of_word.setdefault(word, set()).add(code)
    found: list[dict[str, Any]] = []
    true: list[int] = []
    for word in rng.permutation(sorted(of_word)).tolist():
        group = sorted(of_word[word] - set(true))[:MOST]
        if len(group) < 2 or len(found) >= n:
            continue
        for entity in group:
            for fragment in of_entity[entity]:
                found.append(fragment | ({"name": [word]} if rng.random() < SHARE else {}))
                true.append(entity)
    order = rng.permutation(len(found))
    return [found[k] for k in order], [true[k] for k in order]


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
