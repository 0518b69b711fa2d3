"""A bar that shows how far a long call is, in a terminal or a notebook."""

from __future__ import annotations

import sys
import warnings
from typing import Any

from indexplan.errors import IndexPlanError


class ProgressBar:
    """A bar with rate and remaining time, to pass as `progress`; a widget in notebooks.

    Needs tqdm, which `pip install 'indexplan[cli]'` brings. Notebooks without ipywidgets show a bar
    of text. A bar ends when all is done, and may be passed to another call then.

    Parameters
    ----------
    words : str
        What stands before the bar.
    unit : str, default "B"
        What is counted: `save`, `finish`, `verify` and `export` count bytes.

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
                warnings.simplefilter("ignore")  # that there are no widgets: text will do
                from tqdm.auto import tqdm
        except ImportError as error:
            rule = "tqdm must be installed for progress bars"
            raise IndexPlanError(f"{rule}; got {error}; pip install 'indexplan[cli]'") from error
        self._tqdm, self.words, self.unit = tqdm, words, unit
        self._bar: Any = None

    def __call__(self, done: int, total: int) -> None:
        """Show how much is done; the first call starts the bar, and the last one ends it."""
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
