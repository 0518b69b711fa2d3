"""Plan directories that are damaged, unfinished, edited or somebody else's: refused, by name."""

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import indexplan as ip
from indexplan.canonical import canonical_json

PLAN = ip.Plan(ip.Shuffle(1000, seed=5), world_size=3, batch_size=16)
CHUNK = "epoch-00000/chunk-00001.npy"


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """A plan directory of one epoch in 4 chunks."""
    ip.save(PLAN, tmp_path / "a.plan", units_per_chunk=256)
    return tmp_path / "a.plan"


def refused(path: Path) -> str:
    """The message with which a path is refused, without the path of the test's folder."""
    with pytest.raises(ip.PlanFileError) as error:
        ip.load(path)
    return str(error.value).replace(str(path.parent) + "/", "")


def rewrite(path: Path, **edits: Any) -> None:
    """Edit fields of a plan.json, and its digest so that it fits."""
    content = json.loads((path / "plan.json").read_text()) | edits
    del content["sha256"]
    digest = hashlib.sha256(canonical_json(content).encode()).hexdigest()
    (path / "plan.json").write_text(canonical_json({**content, "sha256": digest}))


def problems(plan: ip.Plan) -> tuple[str, ...]:
    """What verify says of the bytes of a stored plan."""
    checks = {check.name: check for check in ip.verify(plan).checks}
    return checks["every byte of every chunk is what the order generates"].problems


def test_file(tmp_path: Path) -> None:
    """A file where a directory should be, for reading and for writing."""
    (tmp_path / "a.plan").write_text("not a plan")
    expected = "a.plan must be a plan directory; got a file; check the path"
    assert expected == refused(tmp_path / "a.plan")
    with pytest.raises(
        ip.PlanFileError, match="must be new, empty or a plan directory; got a file"
    ):
        ip.save(PLAN, tmp_path / "a.plan")
    assert "not a plan" == (tmp_path / "a.plan").read_text()


def test_folder_of_something_else(tmp_path: Path) -> None:
    """A folder that holds other things is neither read nor written to."""
    (tmp_path / "a.plan").mkdir()
    (tmp_path / "a.plan/photo.jpg").write_text("precious")
    assert "a.plan must be a plan directory; got a folder without plan.json; check the path" == (
        refused(tmp_path / "a.plan")
    )
    with pytest.raises(ip.PlanFileError) as error:
        ip.save(PLAN, tmp_path / "a.plan")
    assert str(error.value).endswith(
        "a.plan must be new, empty or a plan directory; got a folder that holds photo.jpg; choose "
        "another path"
    )
    assert ["photo.jpg"] == [file.name for file in (tmp_path / "a.plan").iterdir()]


@pytest.mark.parametrize("lost", [False, True])
@pytest.mark.parametrize(
    "name", ["columns/*.npy", "epoch-00000/*-00001.npy", "epoch-00000/*-00001.xxh64"]
)
def test_the_cure_of_a_wrong_size(name: str, lost: bool, tmp_path: Path) -> None:
    """What the message says to do is enough: the same build makes the file again."""
    plan, path = ip.Plan(ip.Weighted(range(1, 21)), batch_size=2), tmp_path / "a.plan"
    ip.save(plan, path, units_per_chunk=8)
    (file,) = path.glob(name)
    whole = file.read_bytes()
    file.write_bytes(whole[:-1])
    if lost:
        file.unlink()
    assert "run the same build again" in refused(path)
    file.unlink(missing_ok=True)
    ip.save(plan, path, units_per_chunk=8)
    assert whole == file.read_bytes()
    assert plan == ip.load(path)


def test_edited_chunk(saved: Path) -> None:
    """A changed index is found by verify, which names chunk, block, position and both numbers."""
    numbers = np.load(saved / CHUNK)
    right, numbers[44] = int(numbers[44]), 7
    header = (saved / CHUNK).read_bytes()[:128]
    (saved / CHUNK).write_bytes(header + numbers.tobytes())
    assert not ip.verify(ip.load(saved)).ok
    assert (
        f"{CHUNK}, block 0: its hash is another",
        f"{CHUNK}, block 0: position 300 of epoch 0 holds 7, not {right}",
    ) == problems(ip.load(saved))
    with pytest.raises(ip.PlanFileError, match="must hold what its order generates; got other"):
        ip.save(PLAN, saved, units_per_chunk=256)


def test_swapped_chunks(saved: Path) -> None:
    """Chunks under each other's names are found by verify."""
    other = saved / "epoch-00000/chunk-00002.npy"
    data = other.read_bytes()
    other.write_bytes((saved / CHUNK).read_bytes())
    (saved / CHUNK).write_bytes(data)
    said = problems(ip.load(saved))
    assert {CHUNK, "epoch-00000/chunk-00002.npy"} == {words.split(",")[0] for words in said}


def test_edited_header(saved: Path) -> None:
    """A chunk whose .npy header was edited is refused when it is read, and found by verify."""
    data = bytearray((saved / CHUNK).read_bytes())
    data[20:30] = b"x" * 10
    (saved / CHUNK).write_bytes(data)
    plan = ip.load(saved)
    with pytest.raises(ip.PlanFileError, match=r"block 0 must have the XXH64"):
        plan.order.take(0, 300)
    assert f"{CHUNK}, block 0: the .npy header is wrong" in problems(plan)


@pytest.mark.parametrize(
    "value",
    [None, -1, 2**70, "../../x", "/etc/passwd", [], {}, True, [2**70], 0.5, "x" * 9999, [[]] * 99],
    ids=lambda value: repr(value)[:12],
)
def test_edited_plan_json(saved: Path, value: Any) -> None:
    """Whatever field of plan.json is changed to whatever value, the plan is refused."""
    content = json.loads((saved / "plan.json").read_text())
    assert 11 == len(content)
    for field in content:
        if content[field] is not value:  # null is right for a dataset
            text = canonical_json({**content, field: value})
            (saved / "plan.json").write_text(text)
            assert refused(saved).startswith("a.plan: ")
            assert len(refused(saved)) < 1200


@pytest.mark.parametrize("field", ["epochs", "num_units", "units_per_chunk"])
def test_plan_json_edited_with_its_digest(saved: Path, field: str) -> None:
    """A plan.json that was edited with care, digest included, still has to fit the files."""
    edits = {"epochs": [7], "num_units": [2**60], "units_per_chunk": 1}
    rewrite(saved, **{field: edits[field]})
    assert refused(saved).startswith("a.plan")


def test_plan_json_that_claims_many_files(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a plan.json asks for by a number alone costs nothing: the first missing file ends it."""
    rewrite(saved, num_samples=2**20, num_units=[2**20], units_per_chunk=1)
    (saved / "epoch-00000/chunk-00000.npy").unlink()
    lstat, looked = os.lstat, []

    def counted(*args: Any, **options: Any) -> os.stat_result:
        looked.append(args)
        assert len(looked) < 100
        return lstat(*args, **options)

    monkeypatch.setattr(os, "lstat", counted)
    assert refused(saved).startswith(f"a.plan must have all of its {2**21 + 1} files; got none ")


def test_missing_and_unknown_fields(saved: Path) -> None:
    """plan.json has exactly its fields."""
    content = json.loads((saved / "plan.json").read_text())
    (saved / "plan.json").write_text(json.dumps({**content, "colour": "red"}))
    assert "got ['colour']" in refused(saved)
    for field in content:
        rest = {name: value for name, value in content.items() if name != field}
        (saved / "plan.json").write_text(json.dumps(rest))
        assert field in refused(saved)


@pytest.mark.parametrize("version", [0, 1, 3, 2.0, True, "2", None])
def test_other_formats(saved: Path, version: Any) -> None:
    """Only version 2 is read, and only the integer stands for it."""
    content = json.loads((saved / "plan.json").read_text())
    (saved / "plan.json").write_text(json.dumps({**content, "format_version": version}))
    expected = (
        f"a.plan: format_version must be 2; got {version!r}; read it with the indexplan that wrote "
        "it, or with a newer one"
    )
    assert expected == refused(saved)


@pytest.mark.parametrize(
    "text",
    [
        *("", "{", "[]", "null", '{"a": 1, "a": 2}', '{"a": NaN}', '{"a": -Infinity}', "\x00"),
        *('{"a": 1e999}', '{"a": ' + "9" * 5000 + "}", "[" * 9999, '{"a":' * 400 + "1" + "}" * 400),
        '{"a":' + "[" * 60 + "]" * 60 + "}",
    ],
    ids=lambda text: text[:12],
)
def test_plan_json_that_is_no_object(saved: Path, text: str) -> None:
    """Text that is not one JSON object is refused."""
    (saved / "plan.json").write_text(text)
    assert refused(saved).startswith("a.plan: plan.json must ")


def test_plan_json_that_is_not_text(saved: Path) -> None:
    """Bytes that are not even text are refused."""
    (saved / "plan.json").write_bytes(b"\xff\xfe\x80" * 100)
    assert refused(saved).startswith("a.plan: plan.json must be JSON; got ")


@pytest.mark.parametrize("epochs", [[], [-1], [2**32], [0.5], [True]])
def test_epochs_out_of_range(tmp_path: Path, epochs: list[Any]) -> None:
    """Epochs that cannot be are refused before anything is written."""
    with pytest.raises(ip.IndexPlanError, match=r"epochs? must be "):
        ip.save(PLAN, tmp_path / "a.plan", epochs=epochs)
    assert [] == list(tmp_path.iterdir())
