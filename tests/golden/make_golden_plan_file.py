"""Write plan_file.json, the digest of a plan directory.

`python -m tests.golden.make_golden_plan_file`

The only script that writes it. The bytes are made here from the words of docs/plan-file.md, the
oracle of shuffle-v1 and the xxhash package; of the library nothing is imported. Other bytes are
another format version.
"""

import hashlib
import json
import struct
from pathlib import Path

import xxhash

from tests.support import oracles

NUM_SAMPLES, SEED, EPOCHS, UNITS_PER_CHUNK = 1000, 5, 2, 256


def npy(dtype: str, code: str, numbers: list[int]) -> bytes:
    """Return the bytes of a .npy file with a header of 128 bytes."""
    text = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': ({len(numbers)},), }}"
    header = b"\x93NUMPY\x01\x00" + struct.pack("<H", 118) + text.encode().ljust(117) + b"\n"
    return header + struct.pack(f"<{len(numbers)}{code}", *numbers)


def files() -> dict[str, bytes]:
    """Return the files of the plan directory, but for the manifest, which names a version."""
    build = {
        "format": "indexplan",
        "format_version": 1,
        "order": {"algorithm": "shuffle-v1", "num_samples": NUM_SAMPLES, "seed": SEED},
        "num_samples": NUM_SAMPLES,
        "deals_bins": False,
        "epochs": list(range(EPOCHS)),
        "num_units": [NUM_SAMPLES] * EPOCHS,
        "units_per_chunk": UNITS_PER_CHUNK,
        "dataset": None,
    }
    result = {"build.json": json.dumps(build, sort_keys=True, separators=(",", ":")).encode()}
    hashes = []
    for epoch in range(EPOCHS):
        row = [oracles.shuffle_forward(NUM_SAMPLES, SEED, epoch, p) for p in range(NUM_SAMPLES)]
        for number, start in enumerate(range(0, NUM_SAMPLES, UNITS_PER_CHUNK)):
            data = npy("<u4", "I", row[start : start + UNITS_PER_CHUNK])
            result[f"epoch-{epoch:05d}/chunk-{number:05d}.npy"] = data
            hashes.append(xxhash.xxh64(data).intdigest())
    result["blocks.npy"] = npy("<u8", "Q", hashes)
    return result


def main() -> None:
    """Write the file."""
    digest = hashlib.sha256()
    for name, data in sorted(files().items()):
        digest.update(name.encode() + data)
    golden = {
        "origin": "written by tests/golden/make_golden_plan_file.py",
        "sha256_of_names_and_bytes": digest.hexdigest(),
    }
    text = json.dumps(golden, indent=1) + "\n"
    Path(__file__).with_name("plan_file.json").write_text(text)


if __name__ == "__main__":
    main()
