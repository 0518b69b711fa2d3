"""A figure that notebooks show, with or without pyplot."""

from __future__ import annotations

import io
from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

DPI = 110  # pixels per inch of a .png; savefig takes any


class Picture(Figure):
    """A figure that shows itself once at the end of a notebook's cell.

    pyplot does not know it, so no cell shows it a second time. If pyplot was imported, it has told
    the notebook how to show any figure, and that way is taken.
    """

    @classmethod
    def of(cls, width: float, height: float) -> Picture:
        """Return an empty figure of that many inches, which never opens a window."""
        look: Any = {"layout": "constrained", "facecolor": "white", "dpi": DPI}
        picture = cls(figsize=(width, height), **look)
        FigureCanvasAgg(picture)
        return picture

    def _repr_png_(self) -> bytes:
        stream = io.BytesIO()
        # without the version of matplotlib, so that a notebook that runs again stays as it is
        self.savefig(stream, format="png", metadata={"Software": None})
        return stream.getvalue()
