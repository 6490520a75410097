"""Events, and the live feed of them."""

from __future__ import annotations

from fastapi import APIRouter

from partita.serve.desk import Desk


def router(desk: Desk) -> APIRouter:
    """The calls, answered by a desk."""
    return APIRouter(tags=["events"])
