"""How the site is built: ``sphinx-build -W -b html docs build/docs``. Nothing is fetched, now or by a reader."""

from __future__ import annotations

import importlib.util
import os
import re
import sys
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent
sys.path[:0] = [str(HERE / "_ext"), str(HERE), str(ROOT / "src"), str(ROOT)]
os.environ.setdefault("COLUMNS", "100")

project = "Partita"
author = "the Partita authors"
copyright = author
version = release = re.search(r'^version = "(.*)"$', (ROOT / "pyproject.toml").read_text("utf-8"), re.M)[1]

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "numpydoc",
    "sphinx_copybutton",
    "mathml",
    "repository",
    "made",
]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_ext", "_static", "**/_*.md"]
needs_sphinx = "9.0"
nitpicky = False
autosummary_generate = False

# ---------------------------------------------------------------------- Markdown

myst_enable_extensions = ["dollarmath", "amsmath", "deflist", "attrs_inline", "attrs_block"]
myst_heading_anchors = 4

# ---------------------------------------------------------------------- docstrings

autodoc_member_order = "bysource"
autodoc_typehints = "none"  # numpydoc has them in words
autodoc_mock_imports = [
    name
    for name in ("jax", "equinox", "optax", "tokenizers", "safetensors")
    if importlib.util.find_spec(name) is None
]
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
numpydoc_xref_param_type = False

# ---------------------------------------------------------------------- HTML

html_theme = "furo"
html_title = "Partita"
html_favicon = "_static/icon.svg"
html_static_path = ["_static"]
html_css_files = ["partita.css"]
html_show_sphinx = False
html_show_copyright = False
html_copy_source = False
html_show_sourcelink = False
html_math_renderer = "mathml"
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#1f5f8b", "color-brand-content": "#1f5f8b"},
    "dark_css_variables": {"color-brand-primary": "#7fb6dd", "color-brand-content": "#7fb6dd"},
}
pygments_style = "friendly"
pygments_dark_style = "monokai"
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_only_copy_prompt_lines = True


def skip(app, what, name, thing, skipped, options):
    """Leave out what scikit-learn adds to every estimator for its own routing, and fields that say but their number."""
    routing = re.fullmatch(r"get_metadata_routing|set_\w+_request", name)
    field = re.match(r"Alias for field number \d+$", getattr(thing, "__doc__", None) or "")
    return True if routing or field else None


def drop_empty(app, page, source):
    """Take out what a table of contents has no page for."""

    def entries(match):
        found = [
            line for line in match[0].split("\n") if not line.endswith("*") or any(HERE.glob(f"{line}.md"))
        ]
        return "\n".join(found) if any(re.match(r"[a-z]", line) for line in found) else ""

    if page == "index":
        source[0] = re.sub(r"^```\{toctree\}\n.*?^```$", entries, source[0], flags=re.M | re.S)


def setup(app):
    """Called by Sphinx."""
    app.connect("source-read", drop_empty)
    app.connect("autodoc-skip-member", skip)
