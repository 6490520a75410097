"""The reference of the command line, made of the commands themselves: ``python docs/make_commands.py``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum
from typing import Any, get_args, get_type_hints

import typer

from partita.cli import PANELS, app

HEADS = "| given | means |\n| --- | --- |"


def commands() -> str:
    """All commands as Markdown, in the groups that ``partita --help`` has."""
    group = typer.main.get_command(app)
    left: dict[str, Any] = dict(group.commands)
    parts = []
    for panel in PANELS:
        parts.append(f"## {panel}")
        for name in [name for name, of in left.items() if getattr(of, "rich_help_panel", None) == panel]:
            parts += described(f"partita {name}", left.pop(name))
    if left:
        raise ValueError(f"commands of no group in PANELS: {', '.join(left)}")
    return "\n\n".join(parts)


def described(name: str, command: Any) -> Iterator[str]:
    """A command, or a group of them."""
    if hasattr(command, "commands"):
        for sub, of in command.commands.items():
            yield from described(f"{name} {sub}", of)
        return
    yield f"### {name}"
    yield plain(command.help)
    yield f"```text\n{usage(name, command)}\n```"
    hints = get_type_hints(command.callback, include_extras=False)
    rows = [row(parameter, hints.get(parameter.name)) for parameter in command.params if not parameter.hidden]
    if rows:
        yield "\n".join([HEADS, *rows])


def usage(name: str, command: Any) -> str:
    """The line that says how it is called."""
    arguments = [shown(one) for one in command.params if is_argument(one)]
    return " ".join([name, *arguments, "[OPTIONS]" if len(arguments) < len(command.params) else ""]).strip()


def is_argument(parameter: Any) -> bool:
    """Whether it is given by its place."""
    return not parameter.opts[0].startswith("-")


def shown(parameter: Any) -> str:
    """What stands for an argument or for the value of an option."""
    text = str(parameter.metavar or parameter.name.upper())
    return text if parameter.required else f"[{text}]"


def row(parameter: Any, hint: Any) -> str:
    """A row of the table of a command's arguments and options."""
    if is_argument(parameter):
        name = f"`{parameter.metavar or parameter.name.upper()}`"
    else:
        value = "" if parameter.is_flag or parameter.count else f" {parameter.metavar or value_of(hint)}"
        name = " ".join(f"`{option}{value}`" for option in (*parameter.opts, *parameter.secondary_opts))
    notes = []
    if choices := choices_of(hint):
        notes.append("one of " + ", ".join(f"`{choice}`" for choice in choices))
    if parameter.required and not is_argument(parameter):
        notes.append("required")
    default = parameter.default
    if isinstance(default, Enum):
        default = default.value
    if parameter.show_default and default not in (None, False, "", [], ()) and not callable(default):
        notes.append(f"`{default}` unless given")
    if parameter.envvar:
        notes.append(f"or the environment's `{parameter.envvar}`")
    text = plain(parameter.help).replace("\n", " ").replace("|", "\\|")
    return f"| {name} | {text}{' (' + '; '.join(notes) + ')' if notes else ''} |".replace("KB|", "KB\\|")


def choices_of(hint: Any) -> list[str]:
    """The values that an option may have, if they are few."""
    for one in (hint, *get_args(hint)):
        if isinstance(one, type) and issubclass(one, Enum):
            return [str(member.value) for member in one]
    return []


def value_of(hint: Any) -> str:
    """What stands for the value of an option that does not say."""
    names = {"int": "N", "float": "X", "Path": "FILE", "str": "TEXT"}
    kinds = [one.__name__ for one in (hint, *get_args(hint)) if isinstance(one, type)]
    return next((names[kind] for kind in kinds if kind in names), "VALUE")


def plain(text: str | None) -> str:
    """Help without the markup of terminals."""
    said = re.sub(r"\[/?(?:bold|dim|italic|green|red|cyan)\]", "", text or "").replace("\x08\n", "")
    said = re.sub(r"(?<![`\w-])(--[a-z][\w-]*)", r"`\1`", said)
    said = re.sub(r"(?m)^    +", "", said)
    return re.sub(r"([<>*_])(?![^`]*`)", r"\\\1", said).strip()


if __name__ == "__main__":
    print(commands())
