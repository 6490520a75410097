"""Is everything the same to the last bit? Compares this tree with another checkout, such as the version before.

python -m benchmarks.identical ../before [--data ../shared/data]

Each run is done by both, in processes of their own, and its outcome hashed: labels, particles, probabilities and
scores of all subproblems. What the other has written, samplers and knowledge bases, is opened here and goes on.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("other", type=Path)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    given = parser.parse_args()
    here = Path(__file__).resolve().parent.parent
    with tempfile.TemporaryDirectory() as folder:
        theirs = outcomes(given.other.resolve(), "all", Path(folder), given.data)
        ours = outcomes(here, "all", Path(folder, "ours"), given.data)
        ours |= outcomes(here, "resume", Path(folder), given.data)
    different = 0
    for name, outcome in theirs.items():
        same = ours.get(name) == outcome
        different += not same
        print(f"{'same     ' if same else 'DIFFERENT'}  {name}  {outcome}")
    sys.exit(1 if different else 0)


def outcomes(tree: Path, what: str, folder: Path, data: Path) -> dict[str, str]:
    """What a checkout makes of the runs."""
    folder.mkdir(exist_ok=True)
    command = [sys.executable, __file__, "--run", what, str(folder), str(data.resolve())]
    environment = os.environ | {
        "PYTHONPATH": str(tree / "src"),
        "NUMBA_CACHE_DIR": str(tree / ".numba_cache"),
    }
    done = subprocess.run(command, env=environment, cwd=tree, stdout=subprocess.PIPE, check=True, text=True)
    found: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return found


# ---------------------------------------------------------------------- the runs


def run(what: str, folder: Path, data: Path) -> dict[str, str]:
    """Hashes of the outcomes, by the runs' names."""
    warnings.simplefilter("ignore")
    jobs: dict[str, Callable[[], Any]] = {}
    if what == "all":
        jobs |= points(folder, data) | records(folder, data) | others(data)
    else:
        jobs |= resumed(folder, data)
    found = {}
    for name, job in jobs.items():
        found[name] = digest(job())
        print(name, found[name], file=sys.stderr)
    return found


def digest(outcome: Any) -> str:
    """A hash of arrays, numbers and texts, to the last bit."""
    state = hashlib.blake2b(digest_size=8)

    def add(part: Any) -> None:
        if isinstance(part, np.ndarray):
            state.update(np.ascontiguousarray(part).tobytes())
        elif isinstance(part, list | tuple):
            for item in part:
                add(item)
        elif isinstance(part, float):
            state.update(float(part).hex().encode())
        else:
            state.update(repr(part).encode())

    add(outcome)
    return state.hexdigest()


def posterior(sampler: Any) -> list[Any]:
    """All that a sampler knows."""
    post = sampler.posterior_
    parts = [[s.observations, s.partitions, s.probabilities] for s in post.subproblems]
    return [sampler.labels_, post.log_density(), sampler.alpha_, parts]


def smc(kind: str = "SplitSMC", **parameters: Any) -> Any:
    """A sampler, under the old name of a parameter or the new."""
    import partita as pt

    found = getattr(pt, kind)
    if "keys" in parameters and "keys" not in found._get_param_names():
        parameters["candidates"] = parameters.pop("keys")
    return found(random_state=0, **parameters)


def gauss(data: Path) -> tuple[Any, Any]:
    table = np.loadtxt(data / "points/gauss700.csv", delimiter=",", skiprows=1)
    return table[:, :2], np.load(data / "points/gauss700_orders.npy")


def paper() -> Any:
    import partita as pt

    return pt.Gaussian(shape=2.0, rate=0.5, mean=0.0, precision=2e-4)


def points(folder: Path, data: Path) -> dict[str, Callable[[], Any]]:
    """The paper's points, under every configuration."""
    import partita as pt

    X, orders = gauss(data)
    counts = np.random.default_rng(0).integers(0, 4, (200, 5))

    def saved() -> Any:
        sampler = smc(model=paper(), alpha=20.0, n_particles=20).fit(X[orders[0]][:400])
        sampler.save(folder / "points.partita")
        return posterior(sampler.partial_fit(X[orders[0]][400:]).refine(1))

    def fitted(**parameters: Any) -> Callable[[], Any]:
        return lambda: posterior(smc(**({"model": paper(), "alpha": 20.0} | parameters)).fit(X[orders[1]]))

    wide = pt.MultivariateGaussian()
    return {
        "gauss700, 5 orders, m=100": lambda: [
            posterior(smc(model=paper(), alpha=20.0).fit(X[order])) for order in orders[:5]
        ],
        "gauss700, SMC": fitted(kind="SMC"),
        "gauss700, greedy": fitted(kind="Greedy"),
        "gauss700, alpha learnt, rejuvenation": fitted(alpha="auto", rejuvenation=1, n_particles=20),
        "gauss700, keys": fitted(keys="auto", n_particles=20),
        "gauss700, optimal resampling": fitted(resampling="optimal", n_particles=20),
        "gauss700, multinomial": fitted(resampling="multinomial", merging="multinomial", n_particles=20),
        "gauss700, refined": lambda: posterior(
            smc(model=paper(), alpha=20.0, n_particles=20).fit(X[orders[2]]).refine(3)
        ),
        "gauss700, multivariate": fitted(model=wide, n_particles=20),
        "gauss700, prior fitted": lambda: [
            getattr(pt.Gaussian().fit_prior(X), name) for name in ("shape", "rate", "mean", "precision")
        ],
        "gauss700, removed and constrained": lambda: posterior(
            smc(model=paper(), alpha=20.0, n_particles=20)
            .fit(X[orders[3]][:300])
            .constrain([(0, 5)], [(1, 2)])
            .remove(7)
        ),
        "gauss700, predicted": lambda: (
            smc(model=paper(), alpha=20.0, n_particles=20)
            .fit(X[orders[3]][:600])
            .predict_proba(X[orders[3]][600:])
        ),
        "gauss700, saved half way": saved,
        "counts, categorical": lambda: posterior(smc(model=pt.Categorical(4), alpha=1.0).fit(counts)),
        "counts, Bernoulli": lambda: posterior(smc(model=pt.Bernoulli(), alpha=1.0).fit(counts % 2)),
    }


def loaded(name: str, n: int, data: Path) -> list[Any]:
    """The first n observations of a set."""
    spec = importlib.util.spec_from_file_location("load", data / "load.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return list(module.load(name)[0][:n])


def records(folder: Path, data: Path) -> dict[str, Callable[[], Any]]:
    """Records and texts, in one go, refined, as a stream with a prior from its beginning, and in a store."""
    import partita as pt

    def clustered(name: str, n: int, **parameters: Any) -> list[Any]:
        X = loaded(name, n, data)
        model = pt.Record.infer(X).fit_prior(X)
        sampler = smc(model=model, n_particles=20, **parameters).fit(X)
        return [json.dumps(model.to_json()), posterior(sampler), posterior(sampler.refine(1))]

    def stream() -> list[Any]:
        X = loaded("historical50k", 3000, data)
        model = pt.Record.infer(X[:1000]).fit_prior(X[:1000])
        sampler = smc(model=model, n_particles=20, keys="auto").fit(X[:2000])
        sampler.save(folder / "stream.partita")
        return posterior(sampler.partial_fit(X[2000:]))

    def base() -> list[Any]:
        import partita.kb

        X = loaded("kb50", 400, data)
        with partita.kb.open(folder / "before.db") as kb:
            kb.add(X[:300])
        shutil.copy(folder / "before.db", folder / "opened.db")
        with partita.kb.open(folder / "before.db") as kb:
            return known(kb, X[300:])

    return {
        "kb50": lambda: clustered("kb50", 1000),
        "cora, 500 of it": lambda: clustered("cora", 500, keys="auto"),
        "historical50k, 3,000 of it, as a stream": stream,
        "names200_el, 500 of it, Ngram": lambda: posterior(
            smc(model=pt.Ngram(2), n_particles=20).fit(
                [str(x["name"][0]) for x in loaded("names200_el", 500, data)]
            )
        ),
        "kb50 as a knowledge base": base,
    }


def known(kb: Any, more: list[Any]) -> list[Any]:
    """What a knowledge base makes of more fragments, of judgements and of questions."""
    kb.add(more)
    ids = [id for entity in kb.entities() for id in entity.fragments]
    kb.confirm(ids[0], ids[-1], user="x")
    kb.separate(ids[1], ids[2], user="x")
    kb.refine(1)
    kb.remove(ids[5])
    answers = [entity.as_dict() for entity in kb.entities()]
    events = [(e.kind, e.entity, e.other, e.fragment) for e in kb.events()]
    nats = [[round(step.nats, 8) + 0.0 for step in kb.explain(ids[6], id).steps] for id in ids[7:10]]
    return [json.dumps(answers), events, [(q.first, q.second) for q in kb.uncertain(5)], json.dumps(nats)]


def others(data: Path) -> dict[str, Callable[[], Any]]:
    """Models of a user's own, black boxes and offline methods."""
    from scipy.special import gammaln

    import partita as pt

    X, _ = gauss(data)
    X = X[::4]
    counts = np.random.default_rng(1).poisson(np.repeat([2.0, 30.0, 90.0], 40))[:, None]

    class Poisson(pt.Model):
        def statistics(self, X: Any) -> Any:
            return np.column_stack([X[:, 0], gammaln(X[:, 0] + 1.0)])

        def log_marginal(self, totals: Any, sizes: Any) -> Any:
            shape, rate = 1.0 + totals[:, 0], 0.05 + sizes
            return gammaln(shape) - totals[:, 1] + np.log(0.05) - shape * np.log(rate)

    def spread(clusters: Any) -> Any:
        return [-2.0 - 3.0 * len(c) - 0.5 * len(c) * float(np.var(c, axis=0).sum()) for c in clusters]

    def box(**parameters: Any) -> Any:
        return pt.BlackBox(spread, surrogate=paper(), n_proposals=5, **parameters)

    def history(estimator: Any, X: Any) -> list[Any]:
        fitted = estimator.fit(X)
        return [fitted.labels_, fitted.log_density(), fitted.history_.score]

    return {
        "own model": lambda: posterior(
            smc(model=Poisson(), n_particles=20, rejuvenation=1).fit(counts).refine(1)
        ),
        "black box": lambda: posterior(smc(model=box(), alpha=1.0, n_particles=10).fit(X).refine(1)),
        "black box, ahead": lambda: posterior(smc(model=box(lookahead=8), alpha=1.0, n_particles=10).fit(X)),
        "black box, pooled": lambda: posterior(
            smc(model=box(surrogate_weight=0.5), alpha=1.0, n_particles=10).fit(X)
        ),
        "Gibbs": lambda: history(pt.Gibbs(paper(), 20.0, max_sweeps=20, random_state=0), X),
        "Gibbs, own model": lambda: history(pt.Gibbs(Poisson(), 1.0, max_sweeps=20, random_state=0), counts),
        "agglomerative": lambda: history(pt.Agglomerative(paper(), 20.0), X),
        "agglomerative, own model": lambda: history(pt.Agglomerative(Poisson(), 1.0), counts),
    }


def resumed(folder: Path, data: Path) -> dict[str, Callable[[], Any]]:
    """What the other version has written, opened by this one; the names are those of the runs that go on."""
    import partita as pt
    import partita.kb

    X, orders = gauss(data)

    def base() -> list[Any]:
        fragments = loaded("kb50", 400, data)
        with partita.kb.open(folder / "opened.db") as kb:
            return known(kb, fragments[300:])

    return {
        "gauss700, saved half way": lambda: posterior(
            pt.SplitSMC.load(folder / "points.partita").partial_fit(X[orders[0]][400:]).refine(1)
        ),
        "historical50k, 3,000 of it, as a stream": lambda: posterior(
            pt.SplitSMC.load(folder / "stream.partita").partial_fit(
                loaded("historical50k", 3000, data)[2000:]
            )
        ),
        "kb50 as a knowledge base": base,
    }


if __name__ == "__main__":
    if sys.argv[1:2] == ["--run"]:
        print(json.dumps(run(sys.argv[2], Path(sys.argv[3]), Path(sys.argv[4]))))
    else:
        main()
