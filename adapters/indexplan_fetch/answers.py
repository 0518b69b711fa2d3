"""Check each response of S3 as it arrives: that it has the right file's ETag and byte range.

Comparing ETags before and after a fetch detects a file that was replaced, but not a cache that
still served the old file: only the response itself shows that.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

NOTED = "indexplan"  # where botocore keeps what a request asks for, until its answer comes


class AnswerError(Exception):
    """An answer with other bytes than were asked for; the message says which."""


def watch(store: Any, etag: Callable[[str], str]) -> None:
    """Raise where an answer to a read of this instance of s3fs is of another file or other bytes.

    Parameters
    ----------
    store : fsspec.AbstractFileSystem
        If it is no s3fs.S3FileSystem, nothing is done, as others tell nothing of single answers.
    etag : callable
        etag(path) returns the ETag that a file must have; "" if it is not known.
    """
    if "s3" not in store.protocol:
        return
    store.connect()

    def ask(params: dict[str, Any], context: dict[str, Any], **_: Any) -> None:
        context[NOTED] = params["Bucket"], params["Key"], params.get("Range", "")

    def check(parsed: dict[str, Any], context: dict[str, Any], **_: Any) -> None:
        if "Body" not in parsed or NOTED not in context:  # refused
            return
        bucket, key, asked = context[NOTED]
        wanted, found = etag(f"{bucket}/{key}"), parsed.get("ETag") or ""
        if wanted and found and wanted != found:
            raise AnswerError("bytes of another file, as their ETag says")
        start, first = parsed.get("ContentRange", ""), asked.partition("=")[2].partition("-")[0]
        if first and first != "0" and start.partition(" ")[2].partition("-")[0] != first:
            raise AnswerError("other bytes of the file than were asked for")

    events = store.s3.meta.events
    events.register("provide-client-params.s3.GetObject", ask)
    events.register("after-call.s3.GetObject", check)
