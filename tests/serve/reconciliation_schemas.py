"""What the Reconciliation Service API 0.2 allows, restated from its specification as JSON schemas.

They are stricter than the published ones where the prose is: ids and names are not empty, features have unique ids.
"""

TEXT = {"type": "string"}
NAMED = {"type": "string", "minLength": 1}
URL = {"type": "string", "pattern": "^https?://"}


def record(required, **optional):
    """An object with these fields, and others only where they are optional."""
    fields = required | optional
    return {
        "type": "object",
        "properties": fields,
        "required": sorted(required),
        "additionalProperties": False,
    }


def listed(items, **more):
    return {"type": "array", "items": items, **more}


TYPE = record({"id": NAMED, "name": NAMED}, description=TEXT, broader=listed({"type": "object"}))
TYPES = listed({"oneOf": [record({"id": NAMED}, name=TEXT), TEXT]})
WITH_ID = {"type": "string", "pattern": r"^https?://.*\{\{id\}\}"}

SUGGEST = record(
    {},
    service_url=URL,
    service_path={"type": "string", "pattern": "^/"},
    flyout_service_url=URL,
    flyout_service_path={"type": "string", "pattern": r"\$\{id\}"},
)
SETTING = {
    "oneOf": [
        record(
            {"type": {"const": kind}, "label": NAMED, "name": NAMED}
            | ({"choices": listed(record({"value": TEXT, "name": TEXT}))} if kind == "select" else {}),
            default={"type": default},
            help_text=TEXT,
        )
        for kind, default in (
            ("number", "number"),
            ("text", "string"),
            ("checkbox", "boolean"),
            ("select", "string"),
        )
    ]
}
MANIFEST = record(
    {
        "versions": listed(TEXT, contains={"const": "0.2"}),
        "name": NAMED,
        "identifierSpace": URL,
        "schemaSpace": URL,
    },
    defaultTypes=listed(TYPE, uniqueItems=True),
    documentation=URL,
    logo=URL,
    serviceVersion=TEXT,
    view=record({"url": WITH_ID}),
    feature_view=record({"url": WITH_ID}),
    preview=record({"url": WITH_ID, "width": {"type": "integer"}, "height": {"type": "integer"}}),
    suggest=record({}, entity=SUGGEST, property=SUGGEST, type=SUGGEST),
    extend=record(
        {},
        propose_properties=record({"service_url": URL, "service_path": TEXT}),
        property_settings=listed(SETTING),
    ),
    batchSize={"type": "integer", "minimum": 1},
    authentication={"type": "object"},
)

PROPERTY_VALUE = {
    "oneOf": [TEXT, {"type": "number"}, {"type": "boolean"}, record({"id": TEXT}, name=TEXT)],
}
QUERY = {
    **record(
        {},
        query=TEXT,
        type={"oneOf": [TEXT, listed(TEXT)]},
        limit={"type": "number"},
        properties=listed(
            record({"pid": TEXT, "v": {"oneOf": [PROPERTY_VALUE, listed(PROPERTY_VALUE)]}}),
        ),
        type_strict={"enum": ["any", "should", "all"]},
    ),
    "anyOf": [
        {"required": ["query"]},
        {"required": ["properties"], "properties": {"properties": {"type": "array", "minItems": 1}}},
    ],
}
QUERIES = {"type": "object", "additionalProperties": QUERY}

FEATURE = record({"id": NAMED, "value": {"oneOf": [{"type": "boolean"}, {"type": "number"}]}})
CANDIDATE = record(
    {"id": NAMED, "name": NAMED, "score": {"type": "number"}},
    description=TEXT,
    features=listed(FEATURE),
    match={"type": "boolean"},
    type=TYPES,
)
RESULTS = {"type": "object", "additionalProperties": record({"result": listed(CANDIDATE)})}

SUGGESTED_ENTITIES = record(
    {"result": listed(record({"id": NAMED, "name": NAMED}, description=TEXT, notable=TYPES))}
)
SUGGESTED_PROPERTIES = record({"result": listed(record({"id": NAMED, "name": NAMED}, description=TEXT))})
SUGGESTED_TYPES = record({"result": listed(TYPE)})
FLYOUT = record({"id": TEXT, "html": TEXT})

PROPOSED = record(
    {"properties": listed(record({"id": NAMED, "name": NAMED})), "type": TEXT}, limit={"type": "integer"}
)
DATE = r"^-?\d{4,}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)?$"
CELL = {
    "oneOf": [
        record({}),
        record({"id": TEXT, "name": TEXT}, description=TEXT),
        record({"str": TEXT}),
        record({"float": {"type": "number"}}),
        record({"int": {"type": "integer"}}),
        record({"date": {"type": "string", "pattern": DATE}}),
    ]
}
EXTENSION = record(
    {
        "meta": listed(
            record({"id": TEXT, "name": TEXT}, type=record({"id": TEXT}, name=TEXT), service=URL),
        ),
        "rows": {
            "type": "object",
            "additionalProperties": {"type": "object", "additionalProperties": listed(CELL)},
        },
    }
)
