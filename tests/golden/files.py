"""Known digests of plan directories: of samples, of cut samples, balanced.

The bytes are made here from the words of docs/plan-file.md, the oracles of shuffle-v1 and
document-windows-v1 and the xxhash package; of the library nothing is imported. Other bytes are
another format version.
"""

import hashlib
import json
import struct
from typing import Any

import xxhash

from tests.support import oracles
from tests.support.windows_oracle import Documents

EPOCHS = 2
NUM_SAMPLES, SEED, SAMPLES_PER_CHUNK = 1000, 5, 256
LENGTHS = [1 + 7 * i % 20 for i in range(NUM_SAMPLES)]  # of the balance
DOCUMENTS = Documents(tuple(i * 7 % 23 + 1 for i in range(90)), 20, 3, 16, 5)
WINDOWS_PER_CHUNK = 20


def npy(dtype: str, code: str, numbers: list[int]) -> bytes:
    """Return the bytes of a .npy file with a header of 128 bytes."""
    text = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': ({len(numbers)},), }}"
    header = b"\x93NUMPY\x01\x00" + struct.pack("<H", 118) + text.encode().ljust(117) + b"\n"
    return header + struct.pack(f"<{len(numbers)}{code}", *numbers)


def column(numbers: list[int]) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Return the dict form of a column, and its file."""
    line = f"<u4 {len(numbers)}\n".encode()
    digest = hashlib.sha256(line + struct.pack(f"<{len(numbers)}I", *numbers)).hexdigest()
    file = {f"columns/{digest}.npy": npy("<u4", "I", numbers)}
    return {"dtype": "<u4", "length": len(numbers), "sha256": digest}, file


def directory(
    plan: dict[str, Any], files: dict[str, bytes], units: int, samples: int, *, cuts: bool
) -> dict[str, bytes]:
    """Return a plan directory of some chunks and columns; `units` are those of an epoch."""
    content = {
        "format": "indexplan",
        "format_version": 2,
        "epochs": [*range(EPOCHS)],
        "dataset": None,
        "plan": plan,
        "num_samples": samples,
        "traits": {
            "deals_bins": cuts,
            "constant_num_units": True,
            "reads": "any" if cuts else "once",
            "cuts_samples": cuts,
        },
        "stream_key": plan["order"]["seed"],
        "num_units": [units] * EPOCHS,
        "units_per_chunk": WINDOWS_PER_CHUNK if cuts else SAMPLES_PER_CHUNK,
    }
    digest = hashlib.sha256(canonical(content)).hexdigest()
    found = {**files, "plan.json": canonical({**content, "sha256": digest})}
    for name, data in files.items():
        if name.startswith("epoch-"):
            tag = hashlib.sha256(f"{digest} {name}".encode()).digest()
            hashes = struct.pack("<Q", xxhash.xxh64(data).intdigest())  # they have one block each
            found[name.removesuffix(".npy") + ".xxh64"] = tag + hashes
    return found


def canonical(content: dict[str, Any]) -> bytes:
    """Return JSON with sorted keys and without spaces."""
    return json.dumps(content, sort_keys=True, separators=(",", ":")).encode()


def plan_of(order: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return the dict form of a plan."""
    same = {"partition": "partition-v1", "global_batch_size": None, "resumed": None}
    return {**same, "order": order, "sub_epochs": 1, "remainder": "spread", **more}


def of_samples(balance: dict[str, Any] | None = None) -> dict[str, bytes]:
    """Return the files of a shuffle."""
    chunks = {}
    for epoch in range(EPOCHS):
        row = [oracles.shuffle_forward(NUM_SAMPLES, SEED, epoch, p) for p in range(NUM_SAMPLES)]
        for number, start in enumerate(range(0, NUM_SAMPLES, SAMPLES_PER_CHUNK)):
            some = row[start : start + SAMPLES_PER_CHUNK]
            chunks[f"epoch-{epoch:05d}/chunk-{number:05d}.npy"] = npy("<u4", "I", some)
    order = {"algorithm": "shuffle-v1", "num_samples": NUM_SAMPLES, "seed": SEED}
    plan: dict[str, Any] = {"world_size": 3, "batch_size": 16, "sub_epochs": 2}
    if balance is not None:
        plan["balance"] = balance
    return directory(plan_of(order, **plan), chunks, NUM_SAMPLES, NUM_SAMPLES, cuts=False)


def balanced() -> dict[str, bytes]:
    """Return the files of the same shuffle under a balance, whose lengths are a column."""
    lengths, file = column(LENGTHS)
    balance = {"algorithm": "balance-v1", "lengths": lengths, "linear": 1, "quadratic": 2}
    return {**of_samples(balance), **file}


def of_pieces() -> dict[str, bytes]:
    """Return the files of an order that cuts samples."""
    lengths, files = column([*DOCUMENTS.lengths])
    for epoch in range(EPOCHS):
        units = DOCUMENTS.units(epoch)
        for number, start in enumerate(range(0, DOCUMENTS.num, WINDOWS_PER_CHUNK)):
            some = units[start : start + WINDOWS_PER_CHUNK]
            pieces = [piece for unit in some for piece in unit]
            ends = [sum(map(len, some[:i])) for i in range(len(some) + 1)]
            spans = [end for _, *span in pieces for end in span]
            name = f"epoch-{epoch:05d}/chunk-{number:05d}"
            files[f"{name}.npy"] = npy("<u4", "I", [document for document, *_ in pieces])
            files[f"{name}.offsets.npy"] = npy("<i8", "q", ends)
            files[f"{name}.spans.npy"] = npy("<i8", "q", spans)
    order = {
        "algorithm": "document-windows-v1",
        "lengths": lengths,
        "length": DOCUMENTS.length,
        "overlap": DOCUMENTS.overlap,
        "block_size": DOCUMENTS.block_size,
        "seed": DOCUMENTS.seed,
    }
    plan = plan_of(order, world_size=None, batch_size=3)
    return directory(plan, files, DOCUMENTS.num, len(DOCUMENTS.lengths), cuts=True)


DIRECTORIES = {"of samples": of_samples, "balanced": balanced, "of pieces": of_pieces}


def digest_of(files: dict[str, bytes]) -> str:
    """Return the sha256 of all names and bytes."""
    digest = hashlib.sha256()
    for name, data in sorted(files.items()):
        digest.update(name.encode() + data)
    return digest.hexdigest()


def directories() -> str:
    """Return the digests."""
    digests = {name: digest_of(files()) for name, files in DIRECTORIES.items()}
    origin = "written from the words of docs/plan-file.md"
    return json.dumps({"origin": origin, "sha256_of_names_and_bytes": digests}, indent=1) + "\n"
