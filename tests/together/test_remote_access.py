"""Object stores that cannot be reached, and credentials, which nobody gets to see."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import indexplan as ip
from indexplan.cli import main
from indexplan.stores.open import store_of
from tests.support.remote import (
    ROOT,
    SECRET,
    cache,
    forget,
    refused,
    run,
    saved,
    server,
    store,
    url,
)
from tests.support.s3_server import KEY
from tests.support.trees import PLAN, tree

__all__ = ["cache", "saved", "server", "url"]  # fixtures


def test_no_such_bucket(url: str) -> None:
    """A bucket that is not there is named with what is looked for in it."""
    url = url.replace("bucket", "nobody")
    expected = f"{url}/plan.json must be written; got nothing there; check the bucket and the path"
    assert expected == refused(ip.save, PLAN, url)
    assert refused(ip.load, url).startswith(f"{url} must be a plan directory; got nothing there; ")


def test_wrong_credentials(saved: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Credentials that the store does not know are an error that does not show them."""
    forget()
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIASOMEBODYELSE0000")
    said = "got no permission; check the credentials, and what they are allowed to do"
    try:
        assert f"{saved}/plan.json must be readable; {said}" == refused(ip.load, saved)
        assert f"{saved} must be readable; {said}" == refused(ip.save, PLAN, saved)
    finally:
        forget()


def test_no_server(saved: str) -> None:
    """A store that cannot be reached is an error with its kind."""
    code = (
        "import sys, indexplan as ip\n"
        "try: ip.load(sys.argv[1])\n"
        "except ip.PlanFileError as error: print(error)\n"
    )
    out = run(code, saved, AWS_ENDPOINT_URL="http://127.0.0.1:9", AWS_MAX_ATTEMPTS="1")
    cure = "check the bucket, the credentials and the network"
    expected = f"{saved}/plan.json must be readable; got EndpointConnectionError; {cure}\n"
    assert expected == out


def test_no_credentials(saved: str) -> None:
    """Without credentials, the store's package says that it has none."""
    code = (
        "import os, sys, indexplan as ip\n"
        "del os.environ['AWS_ACCESS_KEY_ID'], os.environ['AWS_SECRET_ACCESS_KEY']\n"
        "try: ip.load(sys.argv[1])\n"
        "except ip.PlanFileError as error: print(error)\n"
    )
    cure = "check the bucket, the credentials and the network"
    expected = f"{saved}/plan.json must be readable; got NoCredentialsError; {cure}\n"
    assert expected == run(code, saved)


@pytest.mark.parametrize(
    "url",
    [
        f"s3://{KEY}:{SECRET}@bucket/a.plan",
        f"s3://{SECRET}@bucket/a.plan",
        f"sftp://me:{SECRET}@host/a.plan",
        f"abfs://me:{SECRET}@account.dfs.core.windows.net/a.plan",
        f"https://host/a.plan?X-Amz-Signature={SECRET}",
        f"simplecache::s3://{SECRET}@bucket/a.plan",
    ],
)
def test_urls_with_credentials(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A URL that carries credentials is refused at once, and never repeated."""
    for function in (ip.load, ip.types.Stored):
        message = refused(function, url)
        assert KEY not in message
    assert message == refused(ip.save, PLAN, url)
    assert 2 == main(["show", url])
    assert f"indexplan: {message}\n" == capsys.readouterr().err
    if "::" not in url:
        assert message.startswith("path must be a URL without credentials, @, ? and #; got one of ")


def test_azure_containers_are_no_credentials() -> None:
    """Azure's way to name a container is not taken for a user."""
    url = "abfs://container@account.dfs.core.windows.net/a.plan"
    assert url == store_of(url + "/").path


def test_secrets_stay_where_they_are(saved: str, tmp_path: Path) -> None:
    """No secret reaches a file, a pickle, an output or an error, wherever it was configured."""
    code = (
        "import pickle, sys, traceback, indexplan as ip\n"
        "from indexplan.cli import main\n"
        "url, folder = sys.argv[1:]\n"
        "plan = ip.load(url)\n"
        "plan.order.take(0, 300)\n"
        "open(folder + '/pickled', 'wb').write(pickle.dumps(plan))\n"
        "ip.save(plan, folder + '/a.plan')\n"
        "ip.save(plan, url + '2')\n"
        "print(repr(plan), main(['show', url]), main(['verify', url]), main(['show', url + '3']))\n"
        "import fsspec\n"
        "fsspec.filesystem('s3', use_listings_cache=False).rm_file(url + '2/plan.json')\n"
        "fsspec.config.conf['s3']['secret'] += 'wrong'\n"
        "fsspec.config.conf['s3']['endpoint_url'] = 'http://127.0.0.1:9/' + sys.stdin.read()\n"
        "try: ip.load(url)\n"
        "except ip.PlanFileError: traceback.print_exc()\n"
    )
    environment = {k: v for k, v in os.environ.items() if k != "AWS_SECRET_ACCESS_KEY"}
    environment["AWS_MAX_ATTEMPTS"] = "1"
    environment["FSSPEC_S3_SECRET"] = SECRET
    environment["FSSPEC_S3_KEY"] = environment.pop("AWS_ACCESS_KEY_ID")
    command = [sys.executable, "-c", code, saved, str(tmp_path)]
    done = subprocess.run(
        command, check=False, capture_output=True, cwd=ROOT, env=environment, input=SECRET.encode()
    )
    assert b"must be readable; got EndpointConnectionError" in done.stderr, done.stderr.decode()
    assert 0 == done.returncode, done.stderr.decode()
    places = [f"s3://{name}" for name in store().find("bucket")]
    everything = [done.stdout, done.stderr, *map(store().cat_file, places)]
    everything += [*tree(tmp_path).values()]
    assert "pickled" in tree(tmp_path)
    assert [] == [text for text in everything if SECRET.encode() in text or KEY.encode() in text]


@pytest.mark.parametrize(
    ("missing", "said"),
    [("fsspec", "s3:// needs fsspec"), ("s3fs", "s3:// needs a package that is not installed")],
)
def test_missing_packages(missing: str, said: str, tmp_path: Path) -> None:
    """Without fsspec or its package for a store, the error names the extra; folders still work."""
    code = (
        f"import sys; sys.modules[{missing!r}] = None\n"
        "import indexplan as ip\n"
        "from tests.support.trees import PLAN\n"
        "ip.save(PLAN, sys.argv[1]); ip.load('file://' + sys.argv[1]).batch(0, 0, step=0, rank=0)\n"
        "try: ip.load('s3://bucket/a.plan')\n"
        "except ip.IndexPlanError as error: print(error)\n"
    )
    cure = "pip install 'indexplan[remote]', or the package that fsspec names for this store"
    assert f"{said}; {cure}\n" == run(code, str(tmp_path / "a.plan"))
