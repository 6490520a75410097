"""The manifest: what the service offers, and where."""

from __future__ import annotations

from pathlib import PurePath
from typing import Any
from urllib.parse import urlsplit

from partita import __version__
from partita.serve.reconcile.candidates import TYPES
from partita.serve.reconcile.extending import SETTINGS
from partita.serve.reconcile.preview import HEIGHT, WIDTH

BATCH = 50  # queries that clients are asked to send at once: few enough for others to be served in between


def manifest(name: str, base: str) -> dict[str, Any]:
    """The manifest of a knowledge base, for who reached it at a base URL, which has no slash at its end."""
    here = f"{base}/reconcile"
    return {
        "versions": ["0.2"],
        "name": f"Partita: {called(name)}",
        "identifierSpace": f"{base}/#/entity/",
        "schemaSpace": f"{base}/api/v1/schema",
        "serviceVersion": __version__,
        "defaultTypes": TYPES,
        "batchSize": BATCH,
        "view": {"url": f"{base}/#/entity/{{{{id}}}}"},
        "preview": {"url": f"{here}/preview?id={{{{id}}}}", "width": WIDTH, "height": HEIGHT},
        "suggest": {
            which: {
                "service_url": base,
                "service_path": f"/reconcile/suggest/{which}",
                "flyout_service_url": base,
                "flyout_service_path": f"/reconcile/flyout/{which}?id=${{id}}",
            }
            for which in ("entity", "property", "type")
        },
        "extend": {
            "propose_properties": {"service_url": base, "service_path": "/reconcile/properties"},
            "property_settings": SETTINGS,
        },
    }


def called(name: str) -> str:
    """What a knowledge base is called: its file, or its database, without where that is."""
    if "://" in name:
        return urlsplit(name).path.strip("/") or "knowledge base"
    return PurePath(name).stem or "knowledge base"
