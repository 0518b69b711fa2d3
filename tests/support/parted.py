"""A plan built in parts: how tests build one, forge its records, and hear what is missing."""

import json
from pathlib import Path

import pytest

import indexplan as ip
from indexplan.canonical import canonical_json
from tests.support.forging import digest
from tests.support.trees import PLAN, tree

TWELVE = {"epochs": range(3), "units_per_chunk": 256}  # 3 epochs of 4 chunks


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The files of a build that was not parted."""
    path = tmp_path_factory.mktemp("whole") / "a.plan"
    ip.save(PLAN, path, **TWELVE)
    return tree(path)


def build(path: Path, number: int, of: int) -> ip.types.Saved:
    """Build one part."""
    return ip.save(PLAN, path, part=(number, of), **TWELVE)


def unfinished(path: Path) -> str:
    """What finish says of a plan that lacks something, without its path."""
    before = tree(path)
    with pytest.raises(ip.PlanFileError) as error:
        ip.finish(path)
    assert before == tree(path)
    return str(error.value).replace(f"{path}", "PLAN")


def forged(record: Path, **changes: object) -> None:
    """Change a record, and make its digest right again."""
    content = {**json.loads(record.read_text()), **changes}
    content.pop("part_sha256", None)
    record.write_text(canonical_json({**content, "part_sha256": digest(content)}))
