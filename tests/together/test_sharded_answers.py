"""An answer of S3 that is of another file, or of other bytes, is not taken for what was asked."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import indexplan as ip
from indexplan_fetch.answers import AnswerError
from indexplan_fetch.source import Source
from tests.storm.__main__ import ENVIRONMENT
from tests.storm.store import BESIDE, CUT, RELABELLED, REPLICA, WHOLE, Mood, Store
from tests.storm.truth import REVERSED, Truth
from tests.support.remote import forget

PLACE = "s3://bucket/answers"
TRUTH = Truth("answers", ((40, 40),), 200, statistics=True, checksums=False)
RIGHT = TRUTH.file(0)


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """A store with one file, whose replica has as many bytes and the same footer."""
    made = Store()
    for name, value in {**ENVIRONMENT, "AWS_ENDPOINT_URL": made.url}.items():
        monkeypatch.setenv(name, value)
    forget()
    replica = TRUTH.file(0, REVERSED)
    made.put("answers/part-0000.parquet", RIGHT, lie=replica, replica=replica)
    yield made
    forget()
    made.shutdown()
    made.server_close()


@pytest.mark.parametrize(
    ("way", "said"),
    [
        (REPLICA, "bytes of another file, as their ETag says"),
        (RELABELLED, "bytes of another file, as their ETag says"),
        (BESIDE, "other bytes of the file than were asked for"),
        (WHOLE, "other bytes of the file than were asked for"),
    ],
)
def test_an_answer_of_other_bytes(store: Store, way: str, said: str) -> None:
    """No check before or after it finds it: the file itself is as it was."""
    source = Source(ip.shard_sizes(f"{PLACE}/*.parquet"), PLACE)
    assert RIGHT[100:1100] == source.piece("part-0000.parquet", 100, 1100)
    store.bucket.conditions = False
    store.set_mood(Mood("other bytes", 1, (way,)))
    with pytest.raises(AnswerError) as error:
        source.piece("part-0000.parquet", 100, 1100)
    assert said == str(error.value)


def test_a_whole_file_of_another_replica(store: Store, tmp_path: Path) -> None:
    """Files that are fetched whole are compared in the same way."""
    shards = ip.shard_sizes(f"{PLACE}/*.parquet", whole_files=True)
    source = Source(shards, PLACE)
    store.set_mood(Mood("another file", 1, (REPLICA,)))
    with pytest.raises(AnswerError):
        source.fetch(0, tmp_path / "shard", lambda _: None)


def test_a_file_that_goes_on_with_other_bytes(store: Store, tmp_path: Path) -> None:
    """What s3fs asks for after a connection was cut is compared, too."""
    source = Source(ip.shard_sizes(f"{PLACE}/*.parquet", whole_files=True), PLACE)
    fates = iter([CUT])
    fate = store.fate
    store.fate = lambda key, span: (next(fates, BESIDE), fate(key, span)[1])  # type: ignore[method-assign]
    with pytest.raises(AnswerError):
        source.fetch(0, tmp_path / "shard", lambda _: None)
