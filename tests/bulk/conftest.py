"""What is learnt of the same records is learnt once: most of these tests compare runs that differ in something else."""

import json

import pytest

from partita.bulk import clustering
from partita.learning.records import fit_prior

LEARNT = {}


def learnt_once(schema, said, progress=None, around=None):
    """The model that ``fit_prior`` learns, which is read only as JSON."""
    key = json.dumps([schema.to_json(), said, around])
    if key not in LEARNT:
        LEARNT[key] = fit_prior(schema, said, progress=progress, around=around)
    return LEARNT[key]


@pytest.fixture(autouse=True, scope="session")
def learning_once():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clustering, "fit_prior", learnt_once)
        yield
