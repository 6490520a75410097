"""Run the commands of the pages below again, and put what they print now into them.

Run it when what they print has changed: ``python docs/run_commands.py``, or with the names of pages for these alone.
Read the text around it afterwards.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

PAGES = (
    "knowledge-base.md",
    "daily-files.md",
    "diagnose.md",
    "looking.md",
    "questions.md",
    "coming-from/splink.md",
)
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.M | re.S)
DATA = re.compile(
    r"^(?:cat > [\w-]+\.(?:csv|json)|python -) <<'END'\n.*?^END$", re.M | re.S
)  # what makes the data
START = (
    f"partita() {{ '{sys.executable}' -c 'from partita.cli import app; app(prog_name=\"partita\")' \"$@\"; }}\n"
    f"python() {{ '{sys.executable}' \"$@\"; }}"
)


def printed(command: str, folder: str) -> str:
    """What a command prints, notes included, without blanks at the ends of lines."""
    environment = {**os.environ, "COLUMNS": "100", "PARTITA_USER": "grace"}
    script = f"{START}\n{command}"
    done = subprocess.run(
        ["bash", "-c", script], cwd=folder, env=environment, capture_output=True, text=True, check=True
    )
    lines = (done.stdout + done.stderr).strip("\n").split("\n")
    return "\n".join(line.rstrip() for line in lines)


def rewrite(path: Path) -> None:
    """Rewrite a page."""
    page = path.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        for made in DATA.findall(page):
            printed(made, folder)

        def block(match: re.Match[str]) -> str:
            commands = re.findall(r"^\$ (.*)$", match[1], re.M)
            shown = "\n\n".join(f"$ {command}\n{printed(command, folder)}" for command in commands)
            return f"```console\n{shown}\n```"

        path.write_text(BLOCK.sub(block, page), encoding="utf-8")


if __name__ == "__main__":
    for name in sys.argv[1:] or PAGES:
        rewrite(Path(__file__).parent / name)
