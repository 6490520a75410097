"""The language model on fragments of entities: alone, pooled with records, and records alone.

    python -m benchmarks.language_model kb50/fragments.jsonl --prior kb_train/fragments.jsonl.gz

One pass of split SMC each. The language model alone has bigrams of the names as its surrogate, whose prior is
fitted to the first labelled fragments of the file given with --prior, as in the paper.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np

import partita as pt
from partita.experiments.files import read_fragments
from partita.neural import JsonLM

LABELLED = 2_000  # fragments to fit the bigrams' prior to


def models(fragments: list[Any], prior: Path) -> dict[str, Any]:
    """Each model by its name."""
    network = JsonLM.pretrained()
    labelled, entities = read_fragments(prior)
    bigram = pt.Ngram(n=2, attribute="name").fit_prior(labelled[:LABELLED], entities[:LABELLED])
    record = pt.Record.infer(fragments).fit_prior(fragments)
    return {
        "records": record,
        "language model": pt.BlackBox(network, bigram),
        "both": network.with_records(record),
    }


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--prior", type=Path, required=True)
    parser.add_argument("--particles", type=int, default=20)
    parser.add_argument("--orders", type=int, default=1)
    parser.add_argument("--models", default="records,language model,both")
    given = parser.parse_args()
    fragments, entities = read_fragments(given.data)
    heads = "model", "order", "precision", "recall", "F1", "clusters", "ECE", "wall s", "calls", "evaluations"
    print("| " + " | ".join(heads) + " |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
    chosen = given.models.split(",")
    for name, model in models(fragments, given.prior).items():
        if name not in chosen:
            continue
        pt.SplitSMC(model, "auto", given.particles).fit(fragments[:10])  # compiles
        for order in range(given.orders):
            shuffled = np.random.default_rng(order).permutation(len(fragments))
            X, truth = [fragments[k] for k in shuffled], entities[shuffled]
            began = time.perf_counter()
            sampler = pt.SplitSMC(model, "auto", given.particles, random_state=0).fit(X)
            seconds = time.perf_counter() - began
            found = pt.bcubed(truth, sampler.labels_)
            error = pt.metrics.calibration_of(sampler.posterior_, truth).expected_calibration_error
            asked = sampler.model_.cache_info() if isinstance(model, pt.BlackBox) else None
            counts = "– | –" if asked is None else f"{asked.calls} | {asked.evaluations:,}"
            figures = (f"{figure:.3f}" for figure in found[:3])
            cells = name, order, *figures, sampler.labels_.max() + 1, f"{error:.3f}", f"{seconds:.1f}", counts
            print("| " + " | ".join(map(str, cells)) + " |", flush=True)


if __name__ == "__main__":
    main()
