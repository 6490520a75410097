"""The garbage collector is left as it was found."""

import gc

import pytest

from partita._core.collecting import uncollected


@pytest.mark.parametrize("collecting", [True, False])
def test_the_collector_is_as_it_was_even_after_an_error(collecting):
    try:
        (gc.enable if collecting else gc.disable)()
        with uncollected(), uncollected():
            assert not gc.isenabled()
        with pytest.raises(ZeroDivisionError), uncollected():
            raise ZeroDivisionError
        assert gc.isenabled() == collecting
    finally:
        gc.enable()
