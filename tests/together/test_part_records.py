"""Records of parts that are damaged, forged, copied or renamed."""

import json
import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import indexplan as ip
from tests.files.test_fuzz_files import changed, check_words
from tests.support.parted import TWELVE, build, expected, forged, unfinished
from tests.support.trees import PLAN, tree

__all__ = ["expected"]  # a fixture


def test_damage_before_the_end(tmp_path: Path, expected: dict[str, bytes]) -> None:
    """A chunk that was cut short, and a record that was edited, are found by their names."""
    path = tmp_path / "a.plan"
    build(path, 1, 3)
    build(path, 3, 3)
    record = path / "part-00001-of-00003.json"
    chunk = path / "epoch-00000/chunk-00001.npy"
    text, data = record.read_bytes(), chunk.read_bytes()
    chunk.write_bytes(data[:-4])
    with pytest.raises(ip.PlanFileError) as error:
        build(path, 2, 3)
    assert (f"{chunk} must hold 1152 bytes; got 1148; delete it, and run its part again") == str(
        error.value
    )
    chunk.write_bytes(data)
    for edited in (text.replace(b"1152", b"1153", 1), b"{}", text[:-1], b'{"a":1,"a":2}'):
        record.write_bytes(edited)
        assert unfinished(path).startswith("PLAN/part-00001-of-00003.json: ")
        assert unfinished(path).endswith("; delete it, and run part 1/3 again")
    record.unlink()
    assert build(path, 1, 3).finished
    assert expected == tree(path)


def test_records_of_another_build(tmp_path: Path) -> None:
    """A record that was copied from another build, or renamed, is refused."""
    for name, seed in (("a.plan", 1), ("b.plan", 2)):
        plan = ip.Plan(ip.Shuffle(1000, seed=seed), batch_size=8)
        ip.save(plan, tmp_path / name, part=(1, 2), **TWELVE)
    first, second = "part-00001-of-00002.json", "part-00002-of-00002.json"
    reason = (
        "a record must belong to the part in its name, and to this build; got another part's, or "
        "build's; delete it, and run part"
    )
    shutil.copy(tmp_path / "b.plan" / first, tmp_path / "b.plan" / second)
    assert f"PLAN/{second}: {reason} 2/2 again" == unfinished(tmp_path / "b.plan")
    ip.save(ip.Plan(ip.Shuffle(1000, seed=2), batch_size=8), tmp_path / "b.plan", **TWELVE)
    shutil.copy(tmp_path / "a.plan" / first, tmp_path / "b.plan" / first)
    ip.finish(tmp_path / "b.plan")  # a plan already; what lies about is swept up
    assert not list((tmp_path / "b.plan").glob("part-*"))


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("chunk_bytes", [1152.0] * 6,
         ": a size must be an integer from 128 to 2**63 - 1; got 1152.0"),
        ("chunk_bytes", [1152, True, 1152, 1056, 1152, 1152],
         ": a size must be an integer from 128 to 2**63 - 1; got True"),
        ("chunk_bytes", [1152] * 5,
         ": a record must hold its part's chunks and blocks; got others"),
        ("chunk_bytes", 6, ": chunk_bytes must be a list of integers; got 6"),
        ("blocks", "00", ": blocks must be 16 hexadecimal digits for each block; got '00'"),
        ("blocks", "0x" * 8,
         f": blocks must be 16 hexadecimal digits for each block; got {'0x' * 8!r}"),
        ("blocks", None, ": blocks must be 16 hexadecimal digits for each block; got None"),
        ("format", "other", ": format must be 'indexplan'; got 'other'"),
        ("format_version", 2, ": format_version must be 1; got 2"),
        ("format_version", True, ": format_version must be 1; got True"),
        ("plan", "run.plan", ": the plan of a record must be an object; got 'run.plan'"),
    ],
)  # fmt: skip
def test_forged_records(tmp_path: Path, field: str, value: object, said: str) -> None:
    """A record that was forged, digest and all, is refused by what it says."""
    path = tmp_path / "a.plan"
    build(path, 1, 2)
    forged(path / "part-00001-of-00002.json", **{field: value})
    with pytest.raises(ip.PlanFileError) as error:
        build(path, 2, 2)
    start, cure = f"{path}/part-00001-of-00002.json", "; delete it, and run part 1/2 again"
    assert f"{start}{said}{cure}" == str(error.value)


@settings(suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_any_forged_record(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    """Whatever a record says, it is refused in one line, or the plan is the one that was built."""
    root = tmp_path_factory.mktemp("forged") / "a.plan"
    build(root, 1, 2)
    record = root / "part-00001-of-00002.json"
    content = json.loads(record.read_text())
    field = data.draw(st.sampled_from(sorted(set(content) - {"part_sha256", "plan"})))
    forged(record, **{field: changed(data.draw, content[field])})
    try:
        build(root, 2, 2)
        assert [*PLAN.order.take(2, 0, 1000)] == [*ip.load(root).order.take(2, 0, 1000)]
    except ip.PlanFileError as error:
        check_words(error)


def test_records_of_no_part(tmp_path: Path, expected: dict[str, bytes]) -> None:
    """A file that is named like a record of a part that cannot be is somebody else's."""
    path = tmp_path / "a.plan"
    build(path, 1, 2)
    names = ["part-00001-of-00000.json", "part-00000-of-00002.json", "part-00003-of-00002.json"]
    for name in names:
        shutil.copy(path / "part-00001-of-00002.json", path / name)
    assert build(path, 2, 2).finished
    assert {*expected, *names} == set(tree(path))
