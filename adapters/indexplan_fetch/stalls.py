"""The warning about a long wait for a shard, which names the process that fetches for the node."""

from __future__ import annotations

from indexplan import Shards
from indexplan.errors import printable
from indexplan_fetch.folder import Folder
from indexplan_fetch.locks import is_held, read_note


def warning(folder: Folder, shards: Shards, shard: int, waited: float) -> str:
    """Return the warning about a shard that was waited for for `waited` seconds."""
    name, _ = shards.part(shard)
    pid = read_note(folder.fetcher) if is_held(folder.fetcher) else None
    if pid is None:
        cure = f"if `fuser {folder.fetcher}` shows one, end it, and another process fetches"
        why = f"no process says that it fetches; {cure}"
    else:
        why = (
            f"process {pid} fetches for this node; if it is stopped, continue it (kill -CONT "
            f"{pid}), or end it, and another process fetches; if it runs, check the store, the "
            "network, and whether cache_dir has room and can be written to"
        )
    text = f"a batch has waited {waited:.0f} seconds for shard {shard}, {shards.path}/{name}: "
    return printable(text + why)  # one line, whatever the names
