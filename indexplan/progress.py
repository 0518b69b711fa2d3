"""A progress bar for long calls, in a terminal or a notebook."""

from __future__ import annotations

import sys
import warnings
from typing import Any

from indexplan.errors import IndexPlanError


class ProgressBar:
    """A progress bar with rate and remaining time, to pass as `progress` to `save` and other calls.

    Needs tqdm, which `pip install 'indexplan[cli]'` installs. In notebooks it is a widget, or text
    where ipywidgets is missing. It ends when the call is done, and can then be passed to another.

    Parameters
    ----------
    words : str
        The text before the bar.
    unit : str, default "B"
        The unit of what is counted: `save`, `finish`, `verify` and `export` count bytes.

    Raises
    ------
    IndexPlanError
        If tqdm is missing.

    Examples
    --------
    >>> import indexplan as ip
    >>> plan = ip.Plan(ip.Shuffle(100_000), batch_size=64)
    >>> ip.save(plan, "run.plan", progress=ip.ProgressBar("building")).num_written
    1
    """

    def __init__(self, words: str, unit: str = "B") -> None:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # that widgets are missing, as text will do
                from tqdm.auto import tqdm
        except ImportError as error:
            rule = "tqdm must be installed for progress bars"
            raise IndexPlanError(f"{rule}; got {error}; pip install 'indexplan[cli]'") from error
        self._tqdm, self.words, self.unit = tqdm, words, unit
        self._bar: Any = None

    def __call__(self, done: int, total: int) -> None:
        """Show that `done` of `total` are done; the first call starts the bar, the last ends it."""
        if self._bar is None:
            self._bar = self._tqdm(
                total=total,
                desc=self.words,
                unit=self.unit,
                unit_scale=True,
                mininterval=0.2,
                file=sys.stderr,
            )
        self._bar.update(done - self._bar.n)
        if done == total:
            self.close()

    def close(self) -> None:
        """End the bar where it is."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None
