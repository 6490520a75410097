"""Tables through Arrow's interface say what the same rows as mappings say."""

import datetime
import subprocess
import sys
from decimal import Decimal

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import partita as pt
from partita.kb.fragments import as_fragments
from partita.models.records.fragments import check_fragments

ROWS = [
    {"name": f"{title}Ada {surname}", "born": datetime.date(1800 + k, 12, 10), "tags": ["a", f"t{k}"], "n": k}
    for k, surname in enumerate(("Lovelace", "King", "Byron", "Noel"))
    for title in ("", "Lady ")
]
ROWS[3] = {"name": "Ada King", "born": None, "tags": None, "n": None}
TABLES = {
    "polars": pl.DataFrame,
    "pyarrow": pa.Table.from_pylist,
    "batch": lambda rows: pa.RecordBatch.from_pylist(rows),
    "stream": lambda rows: pa.Table.from_pylist(rows).to_reader(max_chunksize=3),
    "duckdb": lambda rows: relation(pa.Table.from_pylist(rows)),
}
NUMBERS = np.random.default_rng(0).normal(size=(60, 2)) + np.repeat([[0.0], [50.0]], 30, axis=0)


def relation(table):
    return duckdb.connect().from_arrow(table)


@pytest.mark.parametrize("kind", TABLES)
def test_rows_say_the_same(kind):
    made = TABLES[kind]
    assert check_fragments(made(ROWS)) == check_fragments(ROWS)
    assert list(as_fragments(made(ROWS))) == list(as_fragments(ROWS))
    assert pt.Record.infer(made(ROWS)).to_toml() == pt.Record.infer(ROWS).to_toml()


@pytest.mark.parametrize("kind", TABLES)
def test_models_and_samplers_take_them(kind):
    made, schema = TABLES[kind], pt.Record.infer(ROWS)
    model = schema.fit_prior(ROWS)
    assert schema.fit_prior(made(ROWS)).to_json() == model.to_json()
    assert model.validate(made(ROWS)) == model.validate(ROWS)
    mine = pt.SplitSMC(model, alpha=1.0).partial_fit(made(ROWS[:4])).partial_fit(made(ROWS[4:]))
    theirs = pt.SplitSMC(model, alpha=1.0).fit(ROWS)
    np.testing.assert_array_equal(mine.labels_, theirs.labels_)
    np.testing.assert_array_equal(mine.predict_proba(made(ROWS[:2])), theirs.predict_proba(ROWS[:2]))
    with pytest.raises(TypeError, match="which Gaussian cannot read"):
        pt.SplitSMC(pt.Gaussian()).fit(made(ROWS))


@pytest.mark.parametrize("kind", [*TABLES, "pandas"])
def test_numbers_stay_numbers(kind):
    def made(X):
        columns = {"x": X[:, 0], "y": X[:, 1]}
        return {
            "polars": lambda: pl.DataFrame(columns),
            "pyarrow": lambda: pa.table(columns),
            "batch": lambda: pa.RecordBatch.from_pydict(columns),
            "stream": lambda: pa.table(columns).to_reader(),
            "duckdb": lambda: relation(pa.table(columns)),
            "pandas": lambda: pd.DataFrame(columns),
        }[kind]()

    table = made(NUMBERS)
    mine = pt.SplitSMC(pt.Gaussian(rate=0.5), alpha=1.0).partial_fit(table)
    theirs = pt.SplitSMC(pt.Gaussian(rate=0.5), alpha=1.0).fit(NUMBERS)
    np.testing.assert_array_equal(mine.labels_, theirs.labels_)
    assert mine.feature_names_in_.tolist() == ["x", "y"]
    np.testing.assert_array_equal(mine.predict_proba(made(NUMBERS[:3])), theirs.predict_proba(NUMBERS[:3]))
    labels = np.repeat([0, 1], 30)
    fitted = pt.Gaussian().fit_prior(made(NUMBERS), labels)
    assert repr(fitted.get_params()) == repr(pt.Gaussian().fit_prior(NUMBERS, labels).get_params())


def test_values_are_plain():
    table = pa.table(
        {
            "moment": pa.array([10**9 + 1], pa.timestamp("ns")),
            "cost": pa.array([Decimal("1.50")]),
            "kind": pa.array(["a"]).dictionary_encode(),
            "map": pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int64())),
            "at": pa.array(
                [{"city": "Paris", "days": [datetime.datetime(2020, 1, 2)]}],
                pa.struct({"city": pa.string(), "days": pa.list_(pa.timestamp("ns"))}),
            ),
            "gap": pa.array([float("nan")]),
        }
    )
    assert check_fragments(table) == [
        {
            "moment": ["1970-01-01 00:00:01"],
            "cost": ["1.50"],
            "kind": ["a"],
            "map.k": [1],
            "at.city": ["Paris"],
            "at.days": ["2020-01-02 00:00:00"],
        }
    ]


def test_a_knowledge_base_takes_them(tmp_path):
    found = []
    for k, made in enumerate([list, pd.DataFrame, *TABLES.values()]):
        with pt.kb.open(tmp_path / f"{k}.db") as kb:
            assert (
                kb.add(made([{"name": row["name"], "id": str(n)} for n, row in enumerate(ROWS)])).added == 8
            )
            found.append([entity.fragments for entity in kb.entities()])
    assert all(fragments == found[0] for fragments in found)


def test_what_is_no_table_is_refused():
    with pytest.raises(ValueError, match="columns of the same name"):
        check_fragments(pa.table([["a"], ["b"]], names=["x", "x"]))
    with pytest.raises(ValueError, match="row 0, column 1 is NaN"):
        pt.SplitSMC(pt.Gaussian()).fit(pa.table({"x": [1.0], "y": [None]}, pa.schema({"x": "f8", "y": "f8"})))


def test_without_pyarrow_pandas_and_numbers_go_on_and_others_say_what_to_install():
    code = """
import sys; sys.modules["pyarrow"] = None
import pandas as pd, polars as pl, numpy as np, partita as pt
from partita.models.records.fragments import check_fragments
assert check_fragments(pd.DataFrame([{"name": "Ada", "born": 1}])) == [{"name": ["Ada"], "born": [1]}]
assert len(pt.SplitSMC(pt.Gaussian()).fit(pl.DataFrame({"x": [1.0, 2.0]})).labels_) == 2
try:
    check_fragments(pl.DataFrame({"name": ["Ada"]}))
except ImportError as error:
    assert 'pip install "partita[files]"' in str(error)
else:
    raise AssertionError
"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True)


def test_a_lazy_table_is_refused_with_the_fix(recwarn):
    lazy = pl.DataFrame({"name": ["Ada", "Bob"]}).lazy()
    for take in (pt.Record.infer, pt.SplitSMC(random_state=0).fit):
        with pytest.raises(TypeError, match=r"LazyFrame; give what its collect\(\) returns"):
            take(lazy)
    assert not recwarn.list
