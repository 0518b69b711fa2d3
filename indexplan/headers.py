"""Where the C header of shuffle-v1 is."""

from __future__ import annotations

from pathlib import Path


def get_include() -> str:
    """Return the folder of `indexplan/shuffle_v1.h`, to pass to a C, C++ or CUDA compiler.

    The header computes the indices of `Shuffle` without Python. It is one file without
    dependencies.

    Returns
    -------
    str
        An absolute path.

    Examples
    --------
    >>> from pathlib import Path
    >>> import indexplan as ip
    >>> header = Path(ip.get_include(), "indexplan", "shuffle_v1.h")
    >>> "shuffle_v1_index(const shuffle_v1 *s, uint64_t position)" in header.read_text()
    True
    """
    return str(Path(__file__).absolute().parent / "include")
