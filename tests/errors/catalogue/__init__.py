"""What provokes the errors of errors.txt, and the errors that nobody provokes.

Each section of errors.txt has the names of its module here, and those of `made`.
"""

from __future__ import annotations

# why some errors are not provoked here: how many in which functions of which files
NOT_PROVOKED: dict[str, dict[tuple[str, str], int]] = {
    "takes several ranks: tests/trainers/test_meshes.py": {
        ("adapters/indexplan_torch/meshes.py", "ranks_in"): 3,
        ("adapters/indexplan_torch/meshes.py", "ranks_of_meshes_that_run"): 1,
    },
    "takes several ranks: tests/trainers/test_agreeing.py": {
        ("adapters/indexplan_torch/agreeing.py", "compare"): 3,
    },
    "takes several ranks: tests/trainers/test_ledger.py": {
        ("adapters/indexplan_torch/recording.py", "_heard"): 1,
        ("adapters/indexplan_torch/recording.py", "refuse_a_second_rank"): 1,
        ("adapters/indexplan_torch/recording.py", "Recorder._begun"): 1,
    },
    "takes a trainer of several ranks: tests/trainers/test_lightning.py": {
        ("adapters/indexplan_torch/lightning.py", "_tell_runs"): 1,
    },
    "takes a release of Accelerate that prepares again what is prepared": {
        ("adapters/indexplan_torch/accelerate.py", "prepare"): 1,
    },
    "ends a fetch, which says why: tests/together/test_sharded.py": {
        ("adapters/indexplan_fetch/fetch.py", "Attempt._hear"): 1,
        ("adapters/indexplan_fetch/source.py", "_Watch.relative_update"): 1,
    },
    "ends an attempt, which says why: tests/together/test_sharded.py, _replaced.py": {
        ("adapters/indexplan_fetch/answers.py", "watch.check"): 2,
        ("adapters/indexplan_fetch/source.py", "Source.piece"): 1,
        ("adapters/indexplan_fetch/source.py", "Source._read_footer"): 1,
    },
    "ends an attempt, which says why: tests/together/test_sharded_replaced.py": {
        ("adapters/indexplan_fetch/source.py", "Source._unzip"): 3,
    },
    "takes a file that goes while it is fetched: reading it says the same": {
        ("indexplan/shards/location.py", "Local.stamp"): 1,
        ("indexplan/shards/location.py", "Bucket.stamp"): 1,
    },
    "nobody meets it: the file is made again; tests/files/test_builds.py": {
        ("indexplan/stores/publish.py", "_write"): 1,
    },
    "becomes a warning: tests/stores/test_tables.py": {
        ("indexplan/stores/tables.py", "_library"): 1,
        ("indexplan/stores/tables.py", "_shared.whole"): 1,
    },
    "takes a process without fsspec: tests/adapters/test_packages.py": {
        ("adapters/indexplan_fetch/__init__.py", ""): 1,
    },
    "takes a fork: tests/shards/test_shard_loader.py": {
        ("adapters/indexplan_fetch/loader.py", "ShardLoader.__next__"): 1,
    },
    "takes a process without Grain: tests/adapters/test_packages.py": {
        ("adapters/indexplan_jax/grain.py", ""): 1,
    },
    "takes a process without JAX: tests/adapters/test_packages.py": {
        ("adapters/indexplan_jax/__init__.py", "__getattr__"): 1,
    },
    "takes a fork: tests/plan/test_pulling.py": {
        ("indexplan/plan/pulling.py", "Stream.draw"): 1,
    },
    "takes a process without torch: tests/adapters/test_packages.py": {
        ("adapters/indexplan_torch/__init__.py", ""): 1,
    },
    "takes a web server that does not tell how long its files are": {
        ("indexplan/stores/remote.py", "Remote._size"): 1,
    },
    "opening the file comes first, and fails; takes a disk that breaks": {
        ("indexplan/ledger/file.py", "LedgerFile._check_same"): 1,
    },
    "fsspec lists what a local folder lets it see; takes a server that goes away": {
        ("indexplan/stores/remote.py", "Remote.sizes"): 1,
        ("indexplan/shards/location.py", "Bucket.find"): 1,
    },
    "takes Ray: tests/trainers/test_ray.py": {
        ("adapters/indexplan_torch/drawing.py", "refuse_fetching_ahead"): 1,
    },
    "takes mmengine: tests/through/loops_checks.py": {
        ("adapters/indexplan_torch/drawing.py", "refuse_skipping"): 1,
    },
    "takes Keras: tests/through/loops_checks.py": {
        ("adapters/indexplan_torch/drawing.py", "refuse_drawing_ahead"): 1,
    },
    "takes OLMo-core: tests/through/olmo_checks.py": {
        ("adapters/indexplan_torch/olmo.py", "PlanDataLoader.__init__"): 1,
        ("adapters/indexplan_torch/olmo.py", "PlanDataLoader._units"): 1,
        ("adapters/indexplan_torch/olmo.py", "PlanDataLoader._steps"): 1,
        ("adapters/indexplan_torch/olmo.py", "PlanDataLoader.reshuffle"): 1,
        ("adapters/indexplan_torch/olmo.py", "PlanDataLoader.load_state_dict"): 1,
    },
    "takes torchtitan: tests/through/torchtitan_checks.py": {
        ("adapters/indexplan_torch/torchtitan.py", "PlanDataLoader.load_state_dict"): 1,
        ("adapters/indexplan_torch/torchtitan.py", "_left_out"): 1,
    },
    "takes Composer's environment: tests/trainers/composer_checks.py": {
        ("adapters/indexplan_torch/composer.py", "KeepState.fit_start"): 1,
        ("adapters/indexplan_torch/composer.py", "KeepState.eval_start"): 1,
        ("adapters/indexplan_torch/drawing.py", "refuse_counting_steps"): 1,
    },
}
