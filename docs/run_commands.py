"""Run the commands of docs/knowledge-base.md again, and put what they print now into the page.

Run it when what they print has changed: ``python docs/run_commands.py``. Read the text around it afterwards.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

PAGE = Path(__file__).with_name("knowledge-base.md")
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.M | re.S)
TABLE = re.compile(r"cat > contacts.csv <<'END'\n(.*?)END\n", re.S)
START = (
    f"partita() {{ '{sys.executable}' -c 'from partita.cli import app; app(prog_name=\"partita\")' \"$@\"; }}"
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


def main() -> None:
    """Rewrite the page."""
    page = PAGE.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "contacts.csv").write_text(TABLE.search(page)[1], encoding="utf-8")

        def block(match: re.Match[str]) -> str:
            commands = re.findall(r"^\$ (.*)$", match[1], re.M)
            shown = "\n\n".join(f"$ {command}\n{printed(command, folder)}" for command in commands)
            return f"```console\n{shown}\n```"

        PAGE.write_text(BLOCK.sub(block, page), encoding="utf-8")


if __name__ == "__main__":
    main()
