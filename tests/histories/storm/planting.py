"""What others leave in a cache folder between two legs of a storm. Imports no indexplan."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from random import Random

from tests.histories.storm.truth import OTHER, Truth

NOBODY = 65534
FLIPPED = "bits flipped in a cached shard"
FOLDER = "a cache folder of another user, with other shards"
SHARD = "another user's shards in a folder that all may write to"
LINKS = "another user's links"
PLANTS = (FLIPPED, FOLDER, SHARD, LINKS)


def plant(
    what: str, cache: Path, truth: Truth, random: Random, victim: Path, *, whole: bool
) -> bool:
    """Plant something in a cache folder that a leg has used; return whether there was anything."""
    shards = sorted(path for path in cache.glob("*/shards/*") if path.name[:8].isdigit())
    shards = [path for path in shards if path.suffix in {".parquet", ".tar"}]
    if what == FLIPPED:
        return bool(shards) and flip(random.choice(shards), random)
    if os.geteuid() != 0 or not shards:  # only root can give files away
        return False
    if what == FOLDER:
        theirs = cache.with_name(f"{cache.name}.theirs")
        cache.rename(theirs)
        shutil.copytree(theirs, cache)
        shutil.rmtree(theirs)
    if what == LINKS:
        for path in [*cache.glob("*/failed"), *cache.glob("*/fetcher"), *shards]:
            path.unlink()
            path.symlink_to(victim)
            os.lchown(path, NOBODY, NOBODY)
        for folder in [cache, *cache.glob("*"), *cache.glob("*/shards")]:
            if folder.is_dir():
                folder.chmod(0o777)
        return True
    for path in shards:
        number = truth.file_of(int(path.name[:8]), whole_files=whole)
        path.unlink()
        path.write_bytes(truth.file(number, OTHER))
        os.chown(path, NOBODY, NOBODY)
    for path in [cache, *cache.rglob("*")]:
        if path.is_dir():
            path.chmod(0o777)
        if what == FOLDER:
            os.lchown(path, NOBODY, NOBODY)
    return True


def flip(path: Path, random: Random) -> bool:
    """Flip a bit of some bytes of a file, where it is not a hole; its times stay."""
    data, times = bytearray(path.read_bytes()), path.stat()
    there = [at for at in range(4, len(data) - 4) if data[at]]
    if not there:
        return False
    first = random.choice(there)
    for at in range(first, min(first + 4, len(data))):
        data[at] ^= 1 << random.randrange(8)
    with path.open("rb+") as file:
        file.write(data)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    return True
