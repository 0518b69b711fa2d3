"""Write format_3.json, the digest of a plan directory whose order cuts samples.

`python -m tests.golden.make_golden_format_3`

The only script that writes it. The bytes are made here from the words of docs/plan-file.md, the
oracle of document-windows-v1 and the xxhash package; of the library nothing is imported. Other
bytes are another format version.
"""

import hashlib
import json
import struct
from pathlib import Path

import xxhash

from tests.golden.make_golden_plan_file import npy
from tests.support.documents_oracle import Documents

FIELDS = Documents(tuple(i * 7 % 23 + 1 for i in range(90)), 20, 3, 16, 5)
EPOCHS, UNITS_PER_CHUNK = 2, 20


def files() -> dict[str, bytes]:
    """Return the files of the plan directory, but for the manifest, which names a version."""
    lengths = list(FIELDS.lengths)
    line = f"<u4 {len(lengths)}\n".encode()
    digest = hashlib.sha256(line + struct.pack(f"<{len(lengths)}I", *lengths)).hexdigest()
    build = {
        "format": "indexplan",
        "format_version": 3,
        "order": {
            "algorithm": "document-windows-v1",
            "lengths": {"dtype": "<u4", "length": len(lengths), "sha256": digest},
            "length": FIELDS.length,
            "overlap": FIELDS.overlap,
            "block_size": FIELDS.block_size,
            "seed": FIELDS.seed,
        },
        "num_samples": len(lengths),
        "deals_bins": True,
        "epochs": list(range(EPOCHS)),
        "num_units": [FIELDS.num] * EPOCHS,
        "units_per_chunk": UNITS_PER_CHUNK,
        "dataset": None,
        "constant_num_units": True,
        "reads": "any",
        "stream_key": FIELDS.seed,
        "cuts_samples": True,
    }
    result = {
        "build.json": json.dumps(build, sort_keys=True, separators=(",", ":")).encode(),
        f"columns/{digest}.npy": npy("<u4", "I", lengths),
    }
    hashes = []
    for epoch in range(EPOCHS):
        units = FIELDS.units(epoch)
        for number, start in enumerate(range(0, FIELDS.num, UNITS_PER_CHUNK)):
            chunk = units[start : start + UNITS_PER_CHUNK]
            pieces = [piece for unit in chunk for piece in unit]
            ends = [sum(map(len, chunk[:i])) for i in range(len(chunk) + 1)]
            spans = [end for _, *span in pieces for end in span]
            for kind, data in (
                ("", npy("<u4", "I", [document for document, *_ in pieces])),
                (".offsets", npy("<i8", "q", ends)),
                (".spans", npy("<i8", "q", spans)),
            ):
                result[f"epoch-{epoch:05d}/chunk-{number:05d}{kind}.npy"] = data
                hashes.append(xxhash.xxh64(data).intdigest())
    result["blocks.npy"] = npy("<u8", "Q", hashes)
    return result


def main() -> None:
    """Write the file."""
    digest = hashlib.sha256()
    for name, data in sorted(files().items()):
        digest.update(name.encode() + data)
    golden = {
        "origin": "written by tests/golden/make_golden_format_3.py",
        "sha256_of_names_and_bytes": digest.hexdigest(),
    }
    text = json.dumps(golden, indent=1) + "\n"
    Path(__file__).with_name("format_3.json").write_text(text)


if __name__ == "__main__":
    main()
