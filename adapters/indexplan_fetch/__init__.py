"""Fetch a dataset's shards before a plan reads them, into a folder that a node's ranks share."""

from indexplan.errors import install

try:
    import fsspec  # noqa: F401 (checked first, to say what is missing)
except ModuleNotFoundError as error:
    if error.name != "fsspec":  # a broken fsspec explains itself best
        raise
    raise ModuleNotFoundError(
        f"indexplan_fetch needs fsspec, which is not installed; {install('remote')}",
        name="fsspec",
    ) from error

from indexplan_fetch.loader import ShardLoader
from indexplan_fetch.metrics import Fetched
from indexplan_fetch.opening import ShardFile, open_array_record, open_parquet, open_tar

__all__ = ["Fetched", "ShardFile", "ShardLoader", "open_array_record", "open_parquet", "open_tar"]
