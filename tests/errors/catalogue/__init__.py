"""Every error that somebody can meet: what provokes it. What it says is in errors.txt."""

from __future__ import annotations

from tests.errors.catalogue import (
    balance,
    builds,
    classes,
    columns,
    commands,
    commands_about_files,
    commands_about_plans,
    documents,
    exports,
    grains,
    layers,
    ledgers,
    left_out,
    lengths,
    live,
    manifests,
    megatron,
    mixtures,
    opening,
    orders,
    packing,
    pictures,
    pulling,
    questions,
    recording,
    remotes,
    saves,
    shard_sizes,
    sharded,
    shards,
    specs,
    token_rows,
    torch_bins,
    torches,
    traced,
    traffic,
    trainers,
    weights,
    windows,
)
from tests.errors.catalogue.made import Command, Provoke

_MODULES = (
    specs,
    orders,
    columns,
    layers,
    left_out,
    lengths,
    mixtures,
    packing,
    pictures,
    classes,
    saves,
    questions,
    pulling,
    live,
    builds,
    exports,
    opening,
    manifests,
    remotes,
    commands_about_files,
    torch_bins,
    torches,
    recording,
    trainers,
    megatron,
    grains,
    token_rows,
    weights,
    windows,
    shards,
    shard_sizes,
    sharded,
    documents,
    traffic,
    traced,
    balance,
    ledgers,
)

CASES: dict[str, Provoke] = {
    f"{module.__name__.rpartition('.')[2]}: {name}": provoke
    for module in _MODULES
    for name, provoke in module.CASES
}

COMMANDS: list[Command] = [
    *commands.COMMANDS,
    *commands_about_plans.COMMANDS,
    *commands_about_files.COMMANDS,
    *balance.COMMANDS,
    *ledgers.COMMANDS,
]

_OF_MEGATRON = "takes Megatron: tests/through/megatron_checks.py"
_OF_OLMO = "takes OLMo-core: tests/through/olmo_checks.py"
_OF_TORCHTITAN = "takes torchtitan: tests/through/torchtitan_checks.py"
_IN_COMPOSER = "takes Composer's environment: tests/trainers/composer_resume_checks.py"

# file, function and beginning of what makes an error that is not provoked here, and why
NOT_PROVOKED: dict[tuple[str, str, str], str] = {
    **{
        ("adapters/indexplan_torch/meshes.py", *where): (
            "takes several ranks: tests/trainers/test_meshes.py"
        )
        for where in [
            ("ranks_in", "raise IndexPlanError('mesh', f'must hold this rank, {torch.d"),
            ("ranks_in", "raise _unclear('of the data-parallel dimension', names, size"),
            ("ranks_in", "raise _unclear('of dimensions whose names say what they are'"),
            (
                "ranks_of_meshes_that_run",
                "raise _unclear(\"passed to the loader where its dimensions' n",
            ),
        ]
    },
    **{
        ("adapters/indexplan_torch/agreeing.py", "compare", text): (
            "takes several ranks: tests/trainers/test_agreeing.py"
        )
        for text in [
            "raise IndexPlanError('ranks', rule, got, _SWITCH) from error",
            "raise IndexPlanError('ranks', 'must read the same plan', _di",
            "raise IndexPlanError('ranks', 'must read different parts of ",
        ]
    },
    **{
        ("adapters/indexplan_torch/recording.py", name, text): (
            "takes several ranks: tests/trainers/test_ledger.py"
        )
        for name, text in [
            ("_heard", "raise IndexPlanError('a ledger', f'must be begun by rank {wr"),
            (
                "refuse_a_second_rank",
                "raise IndexPlanError(f'{path}', 'must be written by one rank",
            ),
            ("Recorder._begun", "raise (PlanFileError if heard['file'] else IndexPlanError)(*"),
        ]
    },
    (
        "adapters/indexplan_torch/lightning.py",
        "_tell_runs",
        "raise IndexPlanError('rank and world_size', f\"must be the st",
    ): "takes a trainer of several ranks: tests/trainers/test_lightning.py",
    (
        "adapters/indexplan_torch/accelerate.py",
        "prepare",
        "raise lacking('accelerate', 'a prepare that leaves prepared ",
    ): "takes a release of Accelerate that prepares again what is prepared",
    **{
        (f"adapters/indexplan_fetch/{file}.py", where, "raise LeftError"): (
            "ends a fetch, which says why: tests/together/test_sharded.py"
        )
        for file, where in [("fetch", "Attempt._hear"), ("source", "_Watch.relative_update")]
    },
    **{
        (f"adapters/indexplan_fetch/{file}.py", where, text): (
            "ends an attempt, which says why: tests/together/test_sharded_answers.py and "
            "tests/together/test_sharded_replaced.py"
        )
        for file, where, text in [
            (
                "answers",
                "watch.check",
                "raise AnswerError('bytes of another file, as their ETag says",
            ),
            (
                "answers",
                "watch.check",
                "raise AnswerError('other bytes of the file than were asked f",
            ),
            (
                "source",
                "Source.piece",
                "raise AnswerError(f'{len(data)} bytes instead of the {stop -",
            ),
            (
                "source",
                "Source._read_footer",
                "raise _other_footer(self._where(shard))",
            ),
        ]
    },
    **{
        ("adapters/indexplan_fetch/source.py", "Source._unzip", text): (
            "ends an attempt, which says why: tests/together/test_sharded_indexed.py"
        )
        for text in [
            "raise AnswerError(f'{size} bytes instead of the {zip_bytes} ",
            "raise PlanFileError(where, rule, 'others', RESTORE)",
            "raise _other_hash(where, noted)",
        ]
    },
    **{
        ("indexplan/shards/location.py", where, text): (
            "takes a file that goes while it is fetched: reading it says the same"
        )
        for where, text in [
            ("Local.stamp", "explained('readable', self.root / name)"),
            ("Bucket.stamp", "self._explained('readable', name)"),
        ]
    },
    (
        "indexplan/stores/publish.py",
        "_write",
        "raise _SweptError",
    ): "nobody meets it: the file is made again; tests/files/test_leftovers.py",
    (
        "indexplan/stores/tables.py",
        "_library",
        "raise OSError(f'{path} was changed after this process began'",
    ): "becomes a warning: tests/stores/test_tables.py",
    (
        "indexplan/stores/tables.py",
        "_shared.whole",
        "raise OSError('its file has other bytes than were written')",
    ): "becomes a warning: tests/stores/test_tables.py",
    (
        "adapters/indexplan_fetch/__init__.py",
        "",
        'raise ModuleNotFoundError(f"indexplan_fetch needs fsspec, wh',
    ): "takes a process without fsspec: tests/adapters/test_torch_bad_input.py",
    (
        "adapters/indexplan_fetch/loader.py",
        "ShardLoader.__next__",
        "raise IndexPlanError('a ShardLoader', 'must be read in the p",
    ): "takes a fork: tests/shards/test_shard_loader.py",
    (
        "adapters/indexplan_jax/grain.py",
        "",
        'raise ModuleNotFoundError(f"indexplan_jax.grain needs grain,',
    ): "takes a process without Grain: tests/adapters/test_torch_bad_input.py",
    (
        "adapters/indexplan_jax/__init__.py",
        "__getattr__",
        "raise ModuleNotFoundError(message, name='jax') from error",
    ): "takes a process without JAX: tests/adapters/test_without_jax.py",
    (
        "indexplan/plan/pulling.py",
        "Stream.draw",
        "raise IndexPlanError('a stream', IN_ONE, 'a fork of that pro",
    ): "takes a fork: tests/plan/test_pulling.py",
    (
        "adapters/indexplan_torch/__init__.py",
        "",
        'raise ModuleNotFoundError(f"indexplan_torch needs torch, whi',
    ): "takes a process without torch: tests/adapters/test_torch_bad_input.py",
    (
        "indexplan/stores/remote.py",
        "Remote._size",
        "raise PlanFileError(f'{self.path}/{name}', 'must be served w",
    ): "takes a web server that does not tell how long its files are",
    (
        "indexplan/ledger/file.py",
        "LedgerFile._check_same",
        "explained('readable', self.path)",
    ): "opening the file comes first, and fails; takes a disk that breaks",
    (
        "indexplan/stores/remote.py",
        "Remote.sizes",
        "self._explained('readable')",
    ): "fsspec lists what a local folder lets it see; takes a server that goes away",
    (
        "indexplan/shards/location.py",
        "Bucket.find",
        "self._explained('readable')",
    ): "fsspec lists what a local folder lets it see; takes a server that goes away",
    **{
        ("adapters/indexplan_torch/megatron_samples.py", *where): _OF_MEGATRON
        for where in [
            ("Samples.__init__", "raise invalid('indexed', rule, each, cure)"),
            ("Samples.__init__", "raise invalid('config', 'a GPTDatasetConfig', config, cure)"),
            (
                "Samples._query_document_sample_shuffle_indices",
                "raise invalid('a window', 'a list of Piece(sample, start, st",
            ),
            (
                "Samples._query_document_sample_shuffle_indices",
                "raise IndexPlanError('a window', rule, shown(len(text)), cur",
            ),
        ]
    },
    (
        "adapters/indexplan_torch/ray.py",
        "refuse_fetching_ahead",
        "raise IndexPlanError('a PlanLoader', 'must be read by the lo",
    ): "takes Ray: tests/trainers/test_ray.py",
    (
        "adapters/indexplan_torch/mmengine.py",
        "refuse_skipping",
        "raise IndexPlanError('a loader that was resumed', 'must be t",
    ): "takes mmengine: tests/through/mmengine_checks.py",
    **{
        ("adapters/indexplan_torch/olmo.py", *where): _OF_OLMO
        for where in [
            (
                "PlanDataLoader.__init__",
                "raise invalid('remainder', rule, remainder, 'leave it out')",
            ),
            (
                "PlanDataLoader._units",
                "raise invalid('global_batch_size', rule, tokens, 'change one",
            ),
            (
                "PlanDataLoader._steps",
                "raise invalid('epoch', rule, number + 1, cure)",
            ),
            (
                "PlanDataLoader.reshuffle",
                "raise invalid('epoch', rule, epoch, 'read it, or call reset(",
            ),
            (
                "PlanDataLoader.load_state_dict",
                "raise invalid('dataset', f'the saved one, {shown(saved)}', s",
            ),
        ]
    },
    **{
        ("adapters/indexplan_torch/torchtitan.py", *where): _OF_TORCHTITAN
        for where in [
            (
                "PlanDataLoader.load_state_dict",
                "raise IndexPlanError('state', \"must be a PlanDataLoader's\", ",
            ),
            ("_check_length", "raise invalid('seq_len', rule, length, f'make TokenRows with"),
            ("_check_length", "raise IndexPlanError('TokenWindows', f'must have length={rul"),
            ("_left_out", "raise invalid('labels of a finite loader', 'integers, as man"),
        ]
    },
    (
        "adapters/indexplan_torch/composer.py",
        "KeepState.fit_start",
        "raise IndexPlanError('train_dataloader', 'must be a PlanLoad",
    ): _IN_COMPOSER,
    (
        "adapters/indexplan_torch/composer.py",
        "KeepState.eval_start",
        "raise IndexPlanError('eval_dataloader', 'must be a loader of",
    ): _IN_COMPOSER,
    (
        "adapters/indexplan_torch/counting_composer.py",
        "refuse_counting",
        "raise IndexPlanError('a resume under composer.Trainer on ano",
    ): _IN_COMPOSER,
}
