"""An entity in a small frame: a page of its own, without scripts, that OpenRefine shows beside a candidate."""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Iterable
from html import escape

from partita.kb.queries.answers import Entity, Value
from partita.models.records.fragments import as_text
from partita.serve.reconcile.describing import shortened

WIDTH, HEIGHT = 430, 300  # of the frame, in pixels
ATTRIBUTES = 12
VALUES = 3  # of each attribute
STYLE = (
    "body{font:13px/1.4 system-ui,sans-serif;margin:10px;color:#1d1f21;background:#fff}"
    "h1{font-size:16px;margin:0}p{margin:2px 0 8px;color:#555}"
    "th{text-align:left;vertical-align:top;padding:1px 12px 1px 0;font-weight:600}"
    "td{padding:1px 0}small{color:#555}"
)
DIGEST = b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()


def policy(ancestors: Iterable[str]) -> str:
    """The Content-Security-Policy of the page: no script, no request, and who may frame it."""
    return (
        f"default-src 'none'; style-src 'sha256-{DIGEST}'; base-uri 'none'; form-action 'none'; "
        f"frame-ancestors {' '.join(ancestors)}"
    )


def page(entity: Entity, url: str) -> str:
    """The page, with a link to the entity; whatever values say, it stays text."""
    name = shortened(entity.name or entity.id)
    many = f"{len(entity.fragments):,} fragment{'s' * (len(entity.fragments) != 1)}"
    said = sorted(entity.properties.items(), key=lambda pair: -sum(len(one.sources) for one in pair[1]))
    rows = "".join(
        f"<tr><th>{escape(shortened(attribute))}</th><td>{cells(values)}</td></tr>"
        for attribute, values in said[:ATTRIBUTES]
    )
    left = len(said) - ATTRIBUTES
    more = f"<p>and {left} more attributes</p>" if left > 0 else ""
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(name)}</title>'
        f"<style>{STYLE}</style></head><body>"
        f'<h1><a href="{escape(url)}" target="_blank" rel="noopener">{escape(name)}</a></h1>'
        f"<p>{escape(entity.id)} · {many} · {entity.probability:.0%} sure</p>"
        f"<table>{rows}</table>{more}</body></html>"
    )


def cells(values: list[Value]) -> str:
    """The first few values of an attribute, and how many more there are."""
    shown = [escape(shortened(as_text(one.value))) for one in values[:VALUES]]
    left = len(values) - VALUES
    return "<br>".join([*shown, f"<small>and {left:,} more</small>"] if left > 0 else shown)
