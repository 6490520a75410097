"""The reference of schemas, made of the kinds that are registered: ``python docs/make_schema.py``."""

from __future__ import annotations

from partita.models.records.commented import MEANING, as_toml, meaning_of_kind
from partita.models.records.schema import parameters_of
from partita.models.registry import KINDS


def kinds() -> str:
    """A table of the kinds, each with what it may have."""
    lines = ["| `kind` | for | may have |", "| --- | --- | --- |"]
    for name, kind in sorted(KINDS.items()):
        may = ", ".join(f"`{parameter}`" for parameter in parameters_of(kind))
        lines.append(f'| `"{name}"` | {meaning_of_kind(kind())} | {may} |')
    lines.append('| `"ignore"` | What counts for nothing | |')
    return "\n".join(lines)


def entries() -> str:
    """A table of the entries, with what they are unless given."""
    usual = {"rate": "2.0", "name": "chosen by what identifies", "missing": "what usually stands for nothing"}
    for kind in KINDS.values():
        for parameter in parameters_of(kind):
            usual.setdefault(parameter, f"`{as_toml(getattr(kind(), parameter))}`")
    lines = ["| entry | means | unless given |", "| --- | --- | --- |"]
    lines += [f"| `{entry}` | {said} | {usual.get(entry, '')} |" for entry, said in MEANING.items()]
    return "\n".join(lines)


if __name__ == "__main__":
    print(kinds(), entries(), sep="\n\n")
