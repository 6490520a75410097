"""Nothing is lost when a process is killed; PARTITA_KILLS says how often to try (20 times; 100 with --long)."""

import os
import subprocess
import sys

from tests.helpers.effort import effort
from tests.helpers.files import ROOT

KILLS = os.environ.get("PARTITA_KILLS", effort("20", "100"))


def test_nothing_is_lost_when_the_process_is_killed(url):
    command = [sys.executable, "-m", "tests.helpers.crash", url, KILLS]
    run = subprocess.run(command, capture_output=True, text=True, timeout=1800, cwd=ROOT)
    assert run.returncode == 0, run.stderr
    assert run.stdout.endswith("nothing was lost\n")
