"""Nothing is lost when a process is killed; PARTITA_KILLS says how often to try."""

import os
import subprocess
import sys
from pathlib import Path

KILLS = os.environ.get("PARTITA_KILLS", "10")


def test_nothing_is_lost_when_the_process_is_killed(url):
    script = Path(__file__).with_name("crash.py")
    run = subprocess.run([sys.executable, script, url, KILLS], capture_output=True, text=True, timeout=1800)
    assert run.returncode == 0, run.stderr
    assert run.stdout.endswith("nothing was lost\n")
