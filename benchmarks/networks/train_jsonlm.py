"""Train the language model that Partita ships, on an accelerator, in minutes.

python -m benchmarks.networks.train_jsonlm FOLDER kb_train/fragments.jsonl.gz:6 geo_train/fragments.jsonl.gz:1

Each file of labelled fragments is followed by how often an entity is seen in an epoch. The folder receives a
checkpoint, the curves, and jsonlm.safetensors, not calibrated yet (calibrate_jsonlm).
"""

from __future__ import annotations

import argparse
from pathlib import Path

from partita.experiments.files import read_fragments
from partita.neural.jsonlm import Corpus, learnt

from .train_diffusion import printed


def main() -> None:
    """Train, and keep the weights."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("corpora", nargs="+")
    parser.add_argument("--steps", type=int, default=2_600)
    parser.add_argument("--rate", type=float, default=1e-3)
    given = parser.parse_args()
    corpora = []
    for corpus in given.corpora:
        path, repeats = corpus.rsplit(":", 1)
        corpora.append(Corpus(*read_fragments(Path(path)), int(repeats)))
    model = learnt(
        corpora,
        folder=given.folder,
        steps=given.steps,
        rate=given.rate,
        every=max(given.steps // 25, 1),
        progress=printed(),
    )
    model.save(given.folder / "jsonlm.safetensors")
    print(model)


if __name__ == "__main__":
    main()
