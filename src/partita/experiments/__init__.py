"""The paper's experiments: what is run, the runner, the figures and the report (``partita reproduce``)."""
