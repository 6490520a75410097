"""Settings of Splink become a schema: each of its own kinds of comparisons, in its own format."""

import json
import tomllib

import pytest

from partita.models.records.splink import imported
from tests.cli.test_kb_commands import invoke, refused


def level(sql, **more):
    return {"sql_condition": sql, "label_for_charts": "…", "fix_m_probability": False} | more


def null(sql):
    return level(sql, is_null_level=True)


def missing(column):
    return null(f'"{column}_l" IS NULL OR "{column}_r" IS NULL')


def same(column):
    return level(f'"{column}_l" = "{column}_r"', tf_adjustment_column=column, tf_adjustment_weight=1.0)


OTHERS = level("ELSE")


def comparison(description, name, *levels):
    return {
        "comparison_description": description,
        "output_column_name": name,
        "comparison_levels": [*levels, OTHERS],
    }


def fuzzy(description, column, function):
    near = level(f'{function}("{column}_l", "{column}_r") >= 0.9')
    return comparison(description, column, missing(column), same(column), near)


KM = 'cast(acos(sin(radians("lat_l")) * sin(radians("lat_r")) + cos(radians("lng_r" - "lng_l"))) * 6371 as float) <= 1'
OF_DAY = "try_strptime(\"dob_{}\", '%Y-%m-%d')"
COMPARISONS = {
    "ExactMatch": comparison("ExactMatch", "town", missing("town"), same("town")),
    "JaroWinkler": fuzzy("JaroWinklerAtThresholds", "surname", "jaro_winkler_similarity"),
    "Jaro": fuzzy("JaroAtThresholds", "street", "jaro_similarity"),
    "Levenshtein": comparison(
        "LevenshteinAtThresholds",
        "tax_number",
        missing("tax_number"),
        same("tax_number"),
        level('levenshtein("tax_number_l", "tax_number_r") <= 2'),
    ),
    "NameComparison": fuzzy("NameComparison", "called", "jaro_winkler_similarity"),
    "DateOfBirth": comparison(
        "DateOfBirthComparison",
        "dob",
        null(f"{OF_DAY.format('l')} IS NULL OR {OF_DAY.format('r')} IS NULL"),
        same("dob"),
        level('levenshtein("dob_l", "dob_r") <= 1'),
        level(f"ABS(EPOCH({OF_DAY.format('l')}) - EPOCH({OF_DAY.format('r')})) <= 2629800.0"),
    ),
    "Postcode": comparison(
        "PostcodeComparison",
        "pc",
        missing("pc"),
        same("pc"),
        level("NULLIF(regexp_extract(\"pc_l\", '^[A-Za-z]{1,2}[0-9]', 0), '') = NULLIF(regexp_extract(\"pc_r\", "
              "'^[A-Za-z]{1,2}[0-9]', 0), '')"),
    ),
    "Email": comparison(
        "EmailComparison",
        "contact",
        missing("contact"),
        same("contact"),
        level("NULLIF(regexp_extract(\"contact_l\", '^[^@]+', 0), '') = NULLIF(regexp_extract(\"contact_r\", '^[^@]+', "
              "0), '')"),
    ),
    "ForenameSurname": comparison(
        "ForenameSurnameComparison",
        "fore_sur",
        null('("fore_l" IS NULL OR "fore_r" IS NULL) AND ("sur_l" IS NULL OR "sur_r" IS NULL)'),
        level('("fore_l" = "fore_r") AND ("sur_l" = "sur_r")'),
        level('"fore_l" = "sur_r" AND "fore_r" = "sur_l"'),
        level('(jaro_similarity("fore_l", "fore_r") >= 0.9) AND (jaro_similarity("sur_l", "sur_r") >= 0.9)'),
    ),
    "ArrayIntersect": comparison(
        "ArrayIntersectAtSizes", "tags", missing("tags"), level('array_length(list_intersect("tags_l", "tags_r")) >= 1')
    ),
    "Km": comparison(
        "DistanceInKMAtThresholds", "lat_lng", null('("lat_l" IS NULL) OR ("lng_l" IS NULL)'), level(KM)
    ),
    "Custom": comparison("CustomComparison", "height", null("height_l IS NULL"), level("abs(height_l - height_r) < 2")),
    "Own SQL": comparison(
        "in my own words", "shop", null("shop_l = 'unknown' or shop_r IN ('unknown', '0')"),
        level("split_part(shop_l, ' ', 1) = split_part(shop_r, ' ', 1)"),
    ),
    "Cosine": comparison("CosineSimilarityAtThresholds", "vector", missing("vector"),
                         level('array_cosine_similarity("vector_l", "vector_r") >= 0.9')),
    "Cosine of Spark": comparison(
        "CosineSimilarityAtThresholds", "vector", missing("vector"),
        level("(aggregate(zip_with(`vector_l`, `vector_r`, (x, y) -> x * y), 0.0, (acc, x) -> acc + x)) / "
              "(sqrt(aggregate(transform(`vector_l`, x -> x * x), 0.0, (acc, x) -> acc + x))) >= 0.9"),
    ),
    "Pairwise": comparison(
        "Pairwise jaro_winkler", "aliases", missing("aliases"),
        level('list_max(list_transform(flatten(list_transform("aliases_l", x -> "aliases_r")), '
              "pair -> jaro_winkler_similarity(pair[1], pair[2]))) >= 0.9"),
    ),
    "Name and its sound": comparison(
        "NameComparison", "called", missing("called"), same("called"),
        level('array_length(list_intersect("called_dm_l", "called_dm_r")) >= 1'),
        level('jaro_winkler_similarity("called_l", "called_r") >= 0.7'),
    ),
    "Both names in one column": comparison(
        "ForenameSurnameComparison", "fore_sur",
        null('("fore_l" IS NULL OR "fore_r" IS NULL) AND ("sur_l" IS NULL OR "sur_r" IS NULL)'),
        level('"both_l" = "both_r"', tf_adjustment_column="both"),
        level('"fore_l" = "sur_r" AND "fore_r" = "sur_l"'),
        level('(jaro_similarity("fore_l", "fore_r") >= 0.9) AND (jaro_similarity("sur_l", "sur_r") >= 0.9)'),
        level('"sur_l" = "sur_r"'),
        level('"fore_l" = "fore_r"'),
    ),
}  # fmt: skip
EXPECTED = {
    "ExactMatch": {"town": "category"},
    "JaroWinkler": {"surname": "person_name"},
    "Jaro": {"street": "text"},
    "Levenshtein": {"tax_number": "text"},
    "NameComparison": {"called": "person_name"},
    "DateOfBirth": {"dob": "date"},
    "Postcode": {"pc": "postal_code"},
    "Email": {"contact": "email"},
    "ForenameSurname": {"fore": "person_name", "sur": "person_name"},
    "ArrayIntersect": {"tags": "text"},
    "Km": {"lat": "number", "lng": "number"},
    "Custom": {"height": "number"},
    "Own SQL": {"shop": "text"},
    "Cosine": {"vector": "ignore"},
    "Cosine of Spark": {"vector": "ignore"},
    "Pairwise": {"aliases": "text"},
    "Name and its sound": {"called": "person_name", "called_dm": "ignore"},
    "Both names in one column": {"fore": "person_name", "sur": "person_name", "both": "ignore"},
}
LOST = {
    "ForenameSurname": "swapped",
    "Km": "distance in km",
    "ArrayIntersect": "intersections",
    "Own SQL": "SQL of your own",
    "Cosine": "vectors",
    "Cosine of Spark": "vectors",
    "Pairwise": "nearest of all pairs",
    "DateOfBirth": "days",
}
TWICE = {"Name and its sound": "called_dm", "Both names in one column": "both"}


def settings(*comparisons, **more):
    return {
        "link_type": "dedupe_only",
        "unique_id_column_name": "unique_id",
        "comparisons": list(comparisons),
        "blocking_rules_to_generate_predictions": [
            {"blocking_rule": '(l."town" = r."town")', "sql_dialect": "duckdb"},
            "l.rare = r.rare",
        ],
    } | more


@pytest.mark.parametrize("which", COMPARISONS)
def test_each_kind_of_comparison_has_a_counterpart(which):
    found = imported(settings(COMPARISONS[which]))
    assert {one.column: one.kind for one in found.compared} == EXPECTED[which]
    assert all(LOST.get(which, "") in one.lost for one in found.compared)
    if which not in {*LOST, *TWICE, "Custom"}:
        assert not any(one.lost for one in found.compared)
    schema = tomllib.loads(found.model.to_toml())["attributes"]
    assert {name: of["kind"] for name, of in schema.items()} == EXPECTED[which] | {"*": "ignore"}


@pytest.mark.parametrize("which", TWICE)
def test_columns_made_of_those_beside_them_do_not_count_twice(which):
    found = {one.column: one.lost for one in imported(settings(COMPARISONS[which])).compared}
    assert "count twice" in found.pop(TWICE[which])
    assert not any("count twice" in lost or "by itself" in lost for lost in found.values())


def test_what_stands_for_nothing_is_taken_over():
    schema = tomllib.loads(
        imported(settings(*map(COMPARISONS.get, ["Own SQL", "ExactMatch"]))).model.to_toml()
    )
    assert schema["attributes"]["shop"]["missing"] == ["unknown", "0"]


@pytest.mark.parametrize("quotes", ["``", "[]", '""'])
def test_columns_are_found_in_every_dialect(quotes):
    first, last = quotes
    sql = f"{first}home town_l{last} = {first}home town_r{last}"
    assert [one.column for one in imported(settings(comparison("x", "y", level(sql)))).compared] == [
        "home town"
    ]


def test_what_is_lost_is_said():
    trained = comparison(
        "ExactMatch", "town", missing("town"), same("town") | {"m_probability": 0.9, "u_probability": 0.1}
    )
    found = imported(
        settings(
            trained,
            trained,
            link_type="link_only",
            additional_columns_to_retain=["notes"],
            unique_id_column_name="key",
        )
    )
    assert found.options == ["--id key", "--source source_dataset"]
    assert found.compared[1].lost.startswith("compared above")
    assert found.rules == ['(l."town" = r."town")', "l.rare = r.rare"]
    said = " ".join(found.warnings)
    assert all(word in said for word in ("m and u", "link_only", "rare"))
    assert tomllib.loads(found.model.to_toml())["attributes"]["notes"]["kind"] == "ignore"


@pytest.mark.parametrize(
    "wrong", [[], {}, {"comparisons": []}, {"comparisons": [{"comparison_levels": [1]}]}]
)
def test_what_are_no_settings_is_refused(wrong):
    with pytest.raises(ValueError, match="comparison"):
        imported(wrong)


def test_from_settings_to_entities(tmp_path):
    data, saved, schema, kb = (tmp_path / name for name in ("a.csv", "splink.json", "schema.toml", "a.db"))
    rows = [
        f"{k},surname{k // 2},town{k // 2},anything{k},{'unknown' if k == 3 else 'Shop'}" for k in range(12)
    ]
    data.write_text("\n".join(["unique_id,surname,town,other,shop", *rows]), encoding="utf-8")
    saved.write_text(
        json.dumps(settings(*(COMPARISONS[k] for k in ("JaroWinkler", "ExactMatch", "Own SQL"))))
    )
    done = invoke("import-splink", saved, "-o", schema)
    assert done.exit_code == 0, done.output
    assert "not needed" in done.stdout
    assert f"--schema {schema} --id unique_id" in " ".join(done.stdout.split())
    assert "person_name" in done.stdout
    built = invoke("build", data, "-o", kb, "--schema", schema, "--id", "unique_id")
    assert built.exit_code == 0, built.output
    assert "is new" not in built.output  # what the schema ignores
    shown = json.loads(invoke("show", kb, "3", "--json").stdout)
    assert shown["properties"]["other"] == ["anything3"]  # kept, and no evidence
    explained = json.loads(invoke("explain", kb, "0", "1", "--json").stdout)
    assert not [step for step in explained["steps"] if step["attribute"] == "other" and step["nats"]]


def test_the_schema_is_printed_or_json(tmp_path):
    saved = tmp_path / "splink.json"
    saved.write_text(json.dumps(settings(*COMPARISONS.values())))
    printed = invoke("import-splink", saved)
    assert len(tomllib.loads(printed.stdout)["attributes"]) == 20
    assert "Jaro" in printed.stderr
    found = json.loads(invoke("import-splink", saved, "--json").stdout)
    assert found["schema"] == printed.stdout
    assert len(found["comparisons"]) == 23
    saved.write_text("SELECT")
    assert "is not JSON" in refused("import-splink", saved)
