"""``python -m partita.experiments``: as ``partita reproduce``, where there is neither Typer nor Rich."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from partita.experiments.command import Options, execute, prepare


def main(arguments: list[str] | None = None) -> int:
    """Run an experiment, telling on standard error what goes on; the table goes to standard output."""
    options = Options(**vars(parser().parse_args(arguments)))
    began = time.perf_counter()

    def tell(what: str, done: int, total: int) -> None:
        print(f"{time.perf_counter() - began:8.1f} s  {done}/{total}  {what}", file=sys.stderr, flush=True)

    try:
        report = execute(options, prepare(options), tell)
    except (OSError, ValueError, ImportError) as error:
        print(error, file=sys.stderr)
        return 1
    print((report.parent / "table.md").read_text(encoding="utf-8"), end="")
    print(f"Report written to {report}")
    return 0


def parser() -> argparse.ArgumentParser:
    """The options of ``partita reproduce``."""
    made = argparse.ArgumentParser("python -m partita.experiments", description=main.__doc__)
    made.add_argument("name", help="gaussian, circles, points, names or kb")
    made.add_argument("-o", "--output", type=Path, help="folder for results and report")
    made.add_argument("--data", type=Path, help="points as CSV, or fragments as JSON lines or CSV")
    made.add_argument("--orders", help="how many random orders, or a NumPy file of permutations")
    made.add_argument("--replications", type=int, help="how many orders of the data")
    made.add_argument("--quick", action="store_true", help="a smaller version")
    made.add_argument("--labels", help="field of the true entity in fragments")
    made.add_argument("--model", help="diffusion or gaussian; ngram, record or jsonlm; or a file of weights")
    made.add_argument("--prior", type=Path, help="labelled fragments to fit the prior to")
    made.add_argument("--methods", help="some of greedy,smc,split,refined,gibbs,metropolis,…,ablation")
    made.add_argument("--particles", help="sizes of the samplers, such as 10,100")
    made.add_argument("--max-minutes", type=float, help="the most that an offline method may take")
    made.add_argument("--jobs", type=int, default=1, help="processes for runs side by side")
    return made


if __name__ == "__main__":
    sys.exit(main())
