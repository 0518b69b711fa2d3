"""TRL's GRPOTrainer, RLOOTrainer and SFTTrainer on plans, resumed on other ranks: see .ci/run."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

os.environ.update(HF_HUB_OFFLINE="1")  # before transformers is imported, here and in ranks

import numpy as np
import pytest
import torch
from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from trl import GRPOConfig, GRPOTrainer, RLOOConfig, RLOOTrainer, SFTConfig, SFTTrainer

import indexplan as ip
from indexplan_torch import Bins
from indexplan_torch.causal import join_causal
from indexplan_torch.transformers import use_plan
from tests.through.legs import told_by
from tests.trainers.ranks import run_ranks

IMPORTED_BY_RANKS = ("tests.through.test_trl",)

NUM_PROMPTS = 10
ORDER = ip.Shuffle(NUM_PROMPTS, seed=1)
# 8 completions of 4 prompts are generated at once; 5 times in two epochs, the third for both
PLAN = ip.Plan(ip.Repeat(ORDER, copies=2), global_batch_size=8, remainder="carry")
SIZES: dict[str, Any] = {
    "hidden_size": 8,
    "intermediate_size": 8,
    "num_hidden_layers": 1,
    "num_attention_heads": 1,
}
TURN = 4  # optimizer steps for one global batch: 2 slices, each of them twice
ON_TWO = {"per_device_train_batch_size": 2, "steps_per_generation": 2}
# how 8 completions are dealt on other ranks, in turns of as many steps, and of twice as many; and
# the steps to resume at: on one rank all inside and at the end of a turn, then late, which is about
# the end of the first epoch; on the others some of each
ON_OTHERS = {
    "one": (
        1,
        {"per_device_train_batch_size": 4, "steps_per_generation": 2},
        [*range(1, 2 * TURN + 1), 3 * TURN - 1, 3 * TURN, 4 * TURN + 1],
    ),
    "two": (2, ON_TWO, [1, TURN, 3 * TURN - 1]),
    "four": (4, {"per_device_train_batch_size": 1, "steps_per_generation": 2}, [3, 3 * TURN]),
    "one, in smaller batches": (
        1,
        {"per_device_train_batch_size": 2, "steps_per_generation": 4},
        [2, TURN, TURN + 1, 4 * TURN + 1],
    ),
}
KINDS = {"grpo": (GRPOTrainer, GRPOConfig), "rloo": (RLOOTrainer, RLOOConfig)}


def tokenizer_of(words: list[str]) -> tuple[Any, Any]:
    """Return a tokenizer of some words, and a model."""
    vocabulary = {word: i for i, word in enumerate(["<end>", *words])}
    made = Tokenizer(models.WordLevel(vocabulary, unk_token="<end>"))  # noqa: S106
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    special = {"eos_token": "<end>", "pad_token": "<end>"}
    torch.manual_seed(0)
    model = LlamaForCausalLM(LlamaConfig(vocab_size=len(vocabulary), **SIZES))
    return PreTrainedTokenizerFast(tokenizer_object=made, **special), model


def trained(
    folder: str,
    saved: int | None = None,
    *,
    kind: str = "grpo",
    ledger: str | bool | None = None,
    **given: Any,
) -> dict[str, Any]:
    """Train from prompts; tell the prompts of each step, and of each generation before which."""
    base, config = KINDS[kind]
    dealt: list[list[int]] = []
    generated: list[tuple[int, list[int]]] = []

    class Noting(base):  # type: ignore[misc, valid-type]
        def training_step(self, model: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:
            dealt.append([row["number"] for row in inputs])
            return super().training_step(model, inputs, *args, **kwargs)

        def _generate_and_score_completions(self, inputs: Any) -> Any:
            generated.append((len(dealt) - 1, [row["number"] for row in inputs]))
            return super()._generate_and_score_completions(inputs)

    words = [f"p{number}" for number in range(NUM_PROMPTS)]
    tokenizer, model = tokenizer_of(words)
    options = {
        "num_generations": 2,
        "num_iterations": 2,
        "beta": 0.0,
        "max_completion_length": 2,
        "num_train_epochs": 2,
        "save_strategy": "no",
        **given,
    }
    quiet = {"use_cpu": True, "bf16": False, "report_to": "none", "disable_tqdm": True}
    trainer = Noting(
        model=model,
        reward_funcs=lambda completions, **_: [float(len(set(each))) for each in completions],
        args=config(folder, logging_strategy="no", **quiet, **options),
        train_dataset=Dataset.from_list([{"prompt": w, "number": i} for i, w in enumerate(words)]),
        processing_class=tokenizer,
    )
    use_plan(trainer, PLAN, ledger=ledger)
    trainer.train(resume_from_checkpoint=saved and f"{folder}/checkpoint-{saved}")
    ended = [trainer.state.global_step, trainer.state.max_steps, trainer.state.epoch]
    return {"dealt": dealt, "generated": generated, "ended": ended}


def saving(folder: str) -> dict[str, Any]:
    """Train whole runs on two ranks, each with checkpoints."""
    every: dict[str, Any] = {**ON_TWO, "save_strategy": "steps"}
    runs = {kind: trained(f"{folder}/{kind}", kind=kind, save_steps=1, **every) for kind in KINDS}
    together = {"gradient_accumulation_steps": 3, "save_steps": 1}
    return {**runs, "accumulated": trained(f"{folder}/accumulated", **every, **together)}


def resuming(folder: str, name: str) -> dict[str, Any]:
    """Resume each checkpoint for some steps, and one to the end of the run."""
    world_size, batches, stops = ON_OTHERS[name]
    longer = batches["steps_per_generation"] // 2
    runs = {}
    for saved in stops:
        most = {"max_steps": saved + TURN + 1, "gradient_accumulation_steps": longer}
        runs[f"{saved}"] = trained(f"{folder}/grpo", saved, **batches, **most)
    runs["whole"] = trained(f"{folder}/grpo", 5, **batches, gradient_accumulation_steps=longer)
    if world_size < 4 and longer == 1:
        runs["rloo"] = trained(f"{folder}/rloo", 6, kind="rloo", **batches)
        together = {"gradient_accumulation_steps": 3}
        runs["accumulated"] = trained(f"{folder}/accumulated", 3, **batches, **together)
    return runs


def global_batches(epochs: int = 2) -> list[list[int]]:
    """Return the prompts of each global batch of some epochs."""
    one = PLAN.replace(world_size=1)
    return [batch.tolist() for epoch in range(epochs) for batch in one.batches(epoch, rank=0)]


def together(ranks: list[Any], what: str) -> list[list[int]]:
    """Return what all ranks were dealt, step by step."""
    return [sum(step, []) for step in zip(*(rank[what]["dealt"] for rank in ranks), strict=True)]


def generations(ranks: list[Any], what: str) -> list[tuple[int, list[int]]]:
    """Return before which steps ranks generated, and from which prompts of all of them."""
    found = zip(*(rank[what]["generated"] for rank in ranks), strict=True)
    return [(each[0][0], sum((prompts for _, prompts in each), [])) for each in found]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Where checkpoints are."""
    return str(tmp_path_factory.mktemp("trl"))


@pytest.fixture(scope="module")
def whole(folder: str) -> list[Any]:
    """What two ranks trained on, without a stop."""
    return run_ranks(f"{__name__}:saving", 2, folder, **ON_CPU)


ON_CPU = {"ACCELERATE_USE_CPU": "true", "HF_HUB_OFFLINE": "1"}


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_generates_from_each_prompt_of_the_plan(whole: list[Any], kind: str) -> None:
    """Each global batch is dealt for a whole turn, and generated from once, at its start."""
    batches = global_batches()
    assert [batch for batch in batches for _ in range(TURN)] == together(whole, kind)
    assert [(TURN * i, batch) for i, batch in enumerate(batches)] == generations(whole, kind)
    assert all([5 * TURN, 5 * TURN, 2.0] == rank[kind]["ended"] for rank in whole)


@pytest.mark.parametrize("name", ON_OTHERS)
def test_it_resumes_inside_every_turn(whole: list[Any], folder: str, name: str) -> None:
    """What is trained on continues, and TRL generates when the loader deals another batch."""
    assert whole
    world_size, given, stops = ON_OTHERS[name]
    ranks = run_ranks(f"{__name__}:resuming", world_size, folder, name, **ON_CPU)
    longer = given["steps_per_generation"] // 2
    deals = [batch for batch in global_batches(3) for _ in range(TURN * longer)]
    for saved in stops:
        rest = deals[saved * longer :]
        trained_on = together(ranks, f"{saved}")
        assert rest[: (TURN + 1) * longer] == trained_on, saved
        first = -saved * longer % (TURN * longer)
        starts = sorted({0, *range(first, len(trained_on), TURN * longer)})
        assert [(at, rest[at]) for at in starts] == generations(ranks, f"{saved}"), saved
    end = 5 * TURN * longer
    assert deals[5 * longer : end] == together(ranks, "whole")
    assert all([5 * TURN, 5 * TURN, 2.0] == rank["whole"]["ended"] for rank in ranks)
    if "rloo" in ranks[0]:
        assert deals[6:end] == together(ranks, "rloo")
        # 3 of the 12 steps of the first epoch are an update; the loop had fetched them together
        assert deals[9:end] == together(ranks, "accumulated")


def keeping(folder: str) -> dict[str, Any]:
    """Train with a ledger on two ranks, past a checkpoint that lies inside the second turn."""
    saved = {"save_strategy": "steps", "save_steps": 5, "max_steps": 9}
    return trained(folder, ledger=f"{folder}/run.ledger", **ON_TWO, **saved)


def keeping_on(folder: str) -> list[Any]:
    """Resume from that checkpoint without a ledger, then for good, and then with it, to the end."""
    _, one, _ = ON_OTHERS["one"]
    with pytest.raises(ip.IndexPlanError) as refused:
        trained(folder, 5, **one)
    before = Path(folder, "run.ledger").read_bytes()
    left = trained(folder, 5, ledger=False, max_steps=6, **one)
    assert before == Path(folder, "run.ledger").read_bytes()
    resumed = trained(folder, 5, ledger=f"{folder}/run.ledger", **one)
    return [str(refused.value), left["dealt"], resumed["dealt"]]


def test_a_ledger_has_each_global_batch_once(tmp_path: Any) -> None:
    """After all steps that train on it; what was read past the checkpoint is void."""
    ranks = run_ranks(f"{__name__}:keeping", 2, str(tmp_path), **ON_CPU)
    kept = ip.Ledger(tmp_path / "run.ledger")
    assert (2, 0) == (kept.step, kept.account().num_void_steps)
    ((refused, left, resumed),) = run_ranks(f"{__name__}:keeping_on", 1, str(tmp_path), **ON_CPU)
    assert refused.startswith("ledger must be passed to the loader, as the state is that of a run ")
    deals = [batch for batch in global_batches() for _ in range(TURN)]
    steps = [sum(step, []) for step in zip(*(rank["dealt"] for rank in ranks), strict=True)]
    assert (deals[:9], deals[5:6], deals[5:]) == (steps, left, resumed)
    ledger = ip.Ledger(tmp_path / "run.ledger")
    assert global_batches() == [sum(ranks, []) for ranks in told_by(ledger)]
    assert 1 == ledger.account().num_void_steps
    assert [2, 1] == [ledger.at(step).plan.world_size for step in (0, 1)]


# --- SFTTrainer on packed rows

CHATS = 40
WORDS = [f"w{i}" for i in range(30)]


def chats() -> Dataset:
    """Some chats of a few words."""
    rng = np.random.default_rng(0)
    texts = [[rng.choice(WORDS, rng.integers(2, 30)) for _ in range(2)] for _ in range(CHATS)]
    return Dataset.from_list(
        [{"prompt": " ".join(asked), "completion": " " + " ".join(said)} for asked, said in texts]
    )


def tuned(folder: str, saved: int | None = None, **given: Any) -> dict[str, Any]:
    """Train on packed rows, six a step; tell the losses, and the weights at the end."""
    tokenizer, model = tokenizer_of(WORDS)
    quiet = {"use_cpu": True, "bf16": False, "report_to": "none", "disable_tqdm": True}
    options = {"max_length": 128, "num_train_epochs": 3, "logging_steps": 1, "save_strategy": "no"}
    arguments = SFTConfig(folder, learning_rate=0.1, **quiet, **{**options, **given})
    trainer = SFTTrainer(model, arguments, train_dataset=chats(), processing_class=tokenizer)
    rows = trainer.train_dataset.with_format("torch", columns=["input_ids", "labels"])
    lengths = [len(tokens) for tokens in trainer.train_dataset["input_ids"]]
    plan = ip.Plan(ip.Packed(lengths, max_length=128, seed=0), global_batch_size=6)
    use_plan(trainer, plan, dataset=Bins(rows), collate_fn=join_causal)
    trainer.train(resume_from_checkpoint=saved and f"{folder}/checkpoint-{saved}")
    losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    weights = [value for each in model.parameters() for value in each.flatten().tolist()]
    return {"losses": losses, "weights": weights}


def tuned_and_saved(folder: str) -> dict[str, Any]:
    """Train to the end, with a checkpoint after each update."""
    return tuned(folder, save_strategy="steps", save_steps=1)


def test_packed_rows_on_two_ranks_and_then_three_are_one_run(tmp_path: Any) -> None:
    """The losses and the weights are those of one process, before and after the resume."""
    (one,) = run_ranks(f"{__name__}:tuned", 1, f"{tmp_path}/one", **ON_CPU)
    two = run_ranks(f"{__name__}:tuned_and_saved", 2, f"{tmp_path}/two", **ON_CPU)
    assert len(one["losses"]) > 5
    assert one["losses"][-1] < one["losses"][0]
    for saved in (1, 3):
        three = run_ranks(f"{__name__}:tuned", 3, f"{tmp_path}/two", saved, **ON_CPU)
        for run in (*two, *three):
            np.testing.assert_allclose(run["weights"], one["weights"], atol=2e-4)
            np.testing.assert_allclose(run["losses"], one["losses"], atol=2e-3)
