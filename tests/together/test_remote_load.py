"""Plan directories in object stores: read, fetched once, and kept."""

import hashlib
import os
import pickle
import re
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pytest

import indexplan as ip
from indexplan.cli import main
from indexplan.stores.cache import cache_folder
from tests.support.listed import Listed, Wrapped
from tests.support.remote import (
    AT_ONCE,
    CHUNK,
    ROOT,
    SECRET,
    anywhere,
    cache,
    noted,
    refused,
    run,
    saved,
    server,
    store,
    url,
)
from tests.support.trees import PLAN, tree

__all__ = ["anywhere", "cache", "saved", "server", "url"]  # fixtures


def test_loaded_plan_is_the_plan(anywhere: str) -> None:
    """A plan that is read from a store answers as the one that was saved, and verifies."""
    ip.save(PLAN, anywhere, epochs=range(2), units_per_chunk=256)
    plan = ip.load(anywhere)
    assert (PLAN, anywhere) == (plan, plan.order.path)
    for epoch in range(3):  # the last one is computed
        expected = PLAN.indices(epoch, 1, rank=2).tolist()
        assert expected == plan.indices(epoch, 1, rank=2).tolist()
    assert PLAN.locate(5, 1) == plan.locate(5, 1)
    report = ip.verify(plan)
    assert report.ok, str(report)


def test_columns(anywhere: str, cache: Path) -> None:
    """Columns go through a store, are fetched once, and are refused if they are damaged there."""
    order = Wrapped(Listed(np.arange(600)[::-1], 1000, np.arange(700_000) * 0.5))
    plan = ip.Plan(order, world_size=3, batch_size=16)
    ip.save(plan, anywhere, units_per_chunk=256)
    assert 0 == ip.save(plan, anywhere, units_per_chunk=256).num_written
    read = ip.load(anywhere)
    assert plan == read
    assert order.take(7, 0, 600).tolist() == read.order.take(7, 0, 600).tolist()
    assert plan.locate(5, 7) == read.locate(5, 7)
    found = read.order.columns
    assert order.columns == found
    kept = [Path(each.path or "") for each in found.values()]
    assert all(path.is_relative_to(cache) and path.is_file() for path in kept)
    assert plan == pickle.loads(pickle.dumps(read))  # noqa: S301 (our own)
    assert ip.verify(read).ok
    fs, root = fsspec.core.url_to_fs(anywhere)
    for path in kept:
        name = f"columns/{path.name}"
        data = fs.cat_file(f"{root}/{name}")
        assert path.read_bytes() == data
        said = f"{anywhere}/{name} must hold {found[path.stem].identity['length']} numbers of the"
        for wrong in (data[:-1] + b"\x01", b"\x92" + data[1:]):
            fs.pipe_file(f"{root}/{name}", wrong)
            assert plan.locate(5, 7) == ip.load(anywhere).locate(5, 7)  # by what was kept
            path.unlink()
            assert said in refused(ip.load(anywhere).locate, 5, 7)
            assert [] == [left.name for left in path.parent.iterdir() if path.stem in left.name]
            report = ip.verify(ip.load(anywhere))
            assert not report.ok
            assert said in str(report)
            assert said in refused(ip.save, plan, anywhere, units_per_chunk=256)
            path.write_bytes(data)
        fs.pipe_file(f"{root}/{name}", data[:-1])
        assert f"must hold {len(data)} bytes; got {len(data) - 1}" in refused(ip.load, anywhere)
        fs.rm_file(f"{root}/{name}")
        assert f"got none named {name}; " in refused(ip.load, anywhere)
        ip.save(plan, anywhere, units_per_chunk=256)
        assert data == fs.cat_file(f"{root}/{name}")
    out = anywhere.replace(".plan", ".out")
    assert 2 + 6 == ip.export(plan, out).num_written
    assert 2 + 6 == ip.export(ip.load(anywhere), out).num_kept


def test_verbs(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The verbs of the command line take URLs, and say them."""
    spec = ["--num-samples", "1000", "--batch-size", "16", "--world-size", "3"]
    assert 0 == main(["build", url, *spec])
    assert capsys.readouterr().out.startswith(f"{url}: 4,128 bytes; 1 file written")
    assert 0 == main(["show", url, "--epoch", "0", "--step", "1", "--rank", "2", "--json"])
    expected = ip.Plan(ip.Shuffle(1000), world_size=3, batch_size=16).batch(0, step=1, rank=2)
    assert str(expected.tolist()[:3])[1:-1] in re.sub(r"\s+", " ", capsys.readouterr().out)
    assert 0 == main(["verify", url])
    assert 0 == main(["locate", url, "--index", "7", "--epoch", "0"])
    assert 1 == main(["show", url + "x"])
    said = "check the path, or build it with `indexplan build`\n"
    assert f"indexplan: {url}x must be a plan directory; got nothing there; {said}" == (
        capsys.readouterr().err
    )


def test_process_ends_quietly(saved: str) -> None:
    """A process that has read from a store ends without a word on stderr."""
    code = "import sys, indexplan as ip; print(ip.load(sys.argv[1]).batch(0, 1, step=0, rank=0)[0])"
    assert f"{PLAN.batch(0, 1, step=0, rank=0)[0]}\n" == run(code, saved)


def test_chunks_are_fetched_when_touched(saved: str, server: str, cache: Path) -> None:
    """Opening fetches no chunk; the first touch fetches one, whole; later ones find it."""
    chunk = f"GET /{saved.removeprefix('s3://')}/{CHUNK}"
    before = noted(server, chunk)
    plan = ip.load(saved)
    assert not cache.exists()
    assert PLAN.order.take(0, 300).tolist() == plan.order.take(0, 300).tolist()
    (folder,) = cache.glob("indexplan-*/*")
    assert [CHUNK] == list(tree(folder))
    assert store().cat_file(f"{saved}/{CHUNK}") == (folder / CHUNK).read_bytes()
    assert before + 2 == noted(server, chunk)  # theirs and ours
    del plan
    assert PLAN.order.take(0, 300).tolist() == ip.load(saved).order.take(0, 300).tolist()
    assert before + 2 == noted(server, chunk)


def test_processes_share_a_fetch(saved: str, server: str) -> None:
    """Of processes that touch a chunk at the same time, one fetches it for all."""
    expected = PLAN.order.take(0, 300).tolist()
    work = "ip.types.Stored(url).take(0, 300).tolist()"
    assert f"{[expected] * 3}\n" == run(AT_ONCE.format(work), saved)
    assert 1 == noted(server, f"GET /{saved.removeprefix('s3://')}/{CHUNK}")


def test_another_plan_at_the_same_url(saved: str, cache: Path) -> None:
    """What was kept of a plan is not taken for its successor's at the same URL."""
    ip.load(saved).order.take(0, 300)
    store().rm(saved, recursive=True)
    plan = PLAN.replace(order=ip.Shuffle(1000, seed=6))
    ip.save(plan, saved, epochs=range(2), units_per_chunk=256)
    assert plan.order.take(0, 300).tolist() == ip.load(saved).order.take(0, 300).tolist()
    assert 2 == len(list(cache.glob("indexplan-*/*")))


def test_where_the_cache_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """INDEXPLAN_CACHE comes before XDG_CACHE_HOME, and that before the home folder."""
    key = hashlib.sha256(b"s3://b/a.plan\nid").hexdigest()[:32]
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("INDEXPLAN_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert tmp_path / "home/.cache/indexplan" / key == cache_folder("s3://b/a.plan", "id")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert tmp_path / "xdg/indexplan" / key == cache_folder("s3://b/a.plan", "id")
    monkeypatch.setenv("INDEXPLAN_CACHE", str(tmp_path / "own"))
    assert tmp_path / f"own/indexplan-{os.geteuid()}" / key == cache_folder("s3://b/a.plan", "id")


def test_pickles_to_its_url(saved: str) -> None:
    """A loaded order travels to workers as its URL, and works in a forked one."""
    order = ip.types.Stored(saved)
    text = pickle.dumps(order)
    assert len(text) < 1000
    assert SECRET.encode() not in text
    assert pickle.loads(text).take(0, 300) == order.take(0, 300)  # noqa: S301 (our own)


def test_forked_workers(saved: str) -> None:
    """Workers that are forked after the plan was opened and read fetch what they need."""
    code = (
        "import multiprocessing, sys, warnings, indexplan as ip\n"
        "warnings.simplefilter('ignore')  # of forks, in processes with threads\n"
        "order = ip.types.Stored(sys.argv[1])\n"
        "order.take(0, 0)\n"
        "def work(position): return order.take(0, position).tolist()\n"
        "with multiprocessing.get_context('fork').Pool(2) as pool:\n"
        "    print(sum(pool.map(work, [300, 900]), []))\n"
    )
    expected = PLAN.order.take(0, np.array([300, 900])).tolist()
    assert f"{expected}\n" == run(code, saved)


@pytest.mark.usefixtures("server", "cache")
def test_page_runs() -> None:
    """The code of the page on remote plans runs."""
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs/files.md").read_text(), re.DOTALL)
    (block,) = [block for block in blocks if "s3://bucket" in block]
    names: dict[str, Any] = {}
    exec(block, names)  # noqa: S102 (our own page)
    assert names["report"].ok
