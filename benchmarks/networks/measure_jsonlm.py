"""Bits a token of the language model on random sets of entities that it has not learnt from.

python -m benchmarks.networks.measure_jsonlm WEIGHTS kb_train/fragments.jsonl.gz geo_train/fragments.jsonl.gz
"""

from __future__ import annotations

import argparse
from pathlib import Path

from partita.experiments.files import read_fragments
from partita.neural.corpus import Encoder
from partita.neural.jsonlm import REMEMBERED, Corpus, JsonLM, divided, held_out_bits


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("weights", type=Path)
    parser.add_argument("corpora", nargs="+", type=Path)
    given = parser.parse_args()
    model = JsonLM.load(given.weights)
    encoder = Encoder(model.tokens, model.grammar, REMEMBERED)
    for path in given.corpora:
        held_out = divided(Corpus(*read_fragments(path)))[1]
        found = held_out_bits([held_out], encoder, 32_768)(model.network)
        print(f"{path}: {found['held_out']:.3f} bits a token on sets of {len(held_out):,} held-out entities")


if __name__ == "__main__":
    main()
