"""What ``partita demo`` and ``partita demo points`` do."""

from __future__ import annotations

import errno
import os
from pathlib import Path


def check_writable(output: Path) -> None:
    """Raise OSError if a picture cannot be written there, as far as that can be known before trying."""
    from matplotlib.backend_bases import FigureCanvasBase

    formats = FigureCanvasBase.get_supported_filetypes()
    if output.is_dir():
        raise IsADirectoryError(errno.EISDIR, "it is a directory")
    if not output.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, f"there is no directory {output.parent}")
    if not os.access(output if output.exists() else output.parent, os.W_OK):
        raise PermissionError(errno.EACCES, "permission denied")
    if output.suffix[1:].lower() not in formats:
        raise OSError(errno.EINVAL, f"its suffix must be one of {', '.join(sorted(formats))}")
