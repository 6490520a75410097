"""Networks by name: loaded when they are first asked, and once a process."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

WEIGHTS = ".safetensors"  # how the names of files with weights end


@cache
def loaded(kind: str, source: str) -> Any:
    """A network of ``partita.neural``: from a file with weights, or one that comes with Partita."""
    import partita.neural

    network = getattr(partita.neural, kind)
    if source.endswith(WEIGHTS):
        return network.load(Path(source))
    return network.pretrained(source) if source else network.pretrained()


@cache
def loaded_name(kind: str, source: str) -> str:
    """Its name, which takes a look at all weights."""
    return str(loaded(kind, source).name)


class Network:
    """A function from clusters to log-likelihoods that travels to other processes as its name alone.

    Parameters
    ----------
    kind : {"JsonLM", "SetDiffusion"}
    source : str
        A file with weights, or the name of one that comes with Partita; "" for the only one that does.
    lookahead : int, optional
        For how many observations to ask it at once; what the network says itself unless given.
    """

    def __init__(self, kind: str, source: str = "", lookahead: int | None = None) -> None:
        self.kind, self.source = kind, source
        self.name = loaded_name(kind, source)  # or ImportError, which says what to install
        self.lookahead = getattr(loaded(kind, source), "lookahead", 1) if lookahead is None else lookahead

    def __call__(self, clusters: list[list[Any]]) -> Any:
        return loaded(self.kind, self.source)(clusters)

    @property
    def pool(self) -> dict[str, Any]:
        """The parameters of a black box in which records have a say, if it gives them one."""
        found = getattr(loaded(self.kind, self.source), "pool", None)
        return found._asdict() if found is not None and found.surrogate_weight else {}
