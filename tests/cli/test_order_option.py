"""`--order` as in Python."""

from pathlib import Path

import pytest

import indexplan as ip
from tests.cli.test_cli import fails, run


def test_as_in_python(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An order as in Python says its number of samples itself, and has all its fields inside."""
    root = str(tmp_path / "a")
    text = "Repeat(BlockShuffle(10**2, block_size=10), copies=2)"
    run(capsys, "build", root, "--order", text, "--batch-size", "4")
    assert ip.Plan(ip.Repeat(ip.BlockShuffle(100, 10), 2), batch_size=4) == ip.load(root)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "only").write_text("x")
    more = {
        "--num-samples=99": "the number of samples in --order must be 99, as the other options "
        "say; got 100; change one of the two",
        f"--dataset={tmp_path / 'data'}": "the number of samples in --order must be 1, as "
        "the other options say; got 100; change one of the two",
    }
    for option, expected in more.items():
        words = ["build", f"{root}2", "--order", text, "--batch-size=4", option]
        assert expected == fails(capsys, 2, *words)
        assert not Path(f"{root}2").exists()
