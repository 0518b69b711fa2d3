"""Chats packed into full rows for fine-tuning; stopped on two ranks, resumed on three.

    torchrun --nproc-per-node 2 docs/examples/sft_packing.py --checkpoint sft.pt --max-steps 6
    torchrun --nproc-per-node 3 docs/examples/sft_packing.py --checkpoint sft.pt

A Hugging Face transformers model learns the answers of chats. It attends only inside samples,
because `position_ids` restart with each one. Each token of an answer counts the same in the loss on
every rank, so training on any number of ranks gives the same result as one rank. Rows are full, and
each epoch packs different chats together.
"""

import argparse
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import Dataset
from transformers import LlamaConfig, LlamaForCausalLM

import indexplan as ip
from indexplan_torch import Bins, PlanLoader

NUM, VOCABULARY, MAX_LENGTH, EPOCHS = 400, 40, 256, 2
UNTRAINED = -100  # a label that the loss leaves out


class Chats(Dataset):
    """Questions, and answers that repeat them backwards."""

    def __init__(self) -> None:
        questions = np.random.default_rng(0).lognormal(2.7, 0.7, NUM)
        self.asked = questions.clip(2, 100).astype(np.int64)
        self.lengths = 2 * self.asked + 1  # with a mark between question and answer

    def __len__(self) -> int:
        """Return the number of chats."""
        return NUM

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        """Return a chat's tokens, and as its labels those of the answer."""
        random = torch.Generator().manual_seed(index)
        question = torch.randint(1, VOCABULARY, (int(self.asked[index]),), generator=random)
        tokens = torch.cat([question, torch.zeros(1, dtype=torch.int64), question.flip(0)])
        labels = tokens.clone()
        labels[: len(question) + 1] = UNTRAINED
        return {"input_ids": tokens, "labels": labels, "index": torch.tensor(index)}


def logits_of(model: torch.nn.Module, row: dict[str, torch.Tensor]) -> torch.Tensor:
    """Return the logits of a row of samples, of shape (tokens, vocabulary)."""
    ids, positions = row["input_ids"][None], row["position_ids"][None]
    return model(input_ids=ids, position_ids=positions, use_cache=False).logits[0]


def made() -> LlamaForCausalLM:
    """Return a small language model, the same in each process."""
    torch.manual_seed(0)
    sizes = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2}
    heads = {"num_attention_heads": 4, "num_key_value_heads": 4}
    config = LlamaConfig(
        vocab_size=VOCABULARY, max_position_embeddings=MAX_LENGTH, **sizes, **heads
    )
    return LlamaForCausalLM(config).double()


def train(options: argparse.Namespace) -> None:
    """Train the rest of the epochs, or some steps of them."""
    rank, world_size = dist.get_rank(), dist.get_world_size()
    chats = Chats()
    rows = Bins(chats)
    plan = ip.Plan(ip.Packed(chats.lengths, MAX_LENGTH, seed=1), global_batch_size=6)
    loader = PlanLoader(rows, plan, num_workers=1, collate_fn=list)  # a rank's rows, in a list
    language = made()
    if rank == 0:
        alone = [rows[[index]] for index in (3, 8)]
        apart = torch.cat([logits_of(language, each) for each in alone])
        away = (apart - logits_of(language, rows[[3, 8]])).abs().max()
        print(f"logits of samples in one row and alone differ by less than {away + 1e-12:.0e}")
    model = DistributedDataParallel(language)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    parts = {"loader": loader, "model": model.module, "optimizer": optimizer}
    times = torch.zeros(EPOCHS, NUM, dtype=torch.int64)  # how often each was read
    if options.checkpoint.exists():
        saved = torch.load(options.checkpoint)
        for name, part in parts.items():
            part.load_state_dict(saved[name])
        times = saved["times"]

    start = loader.cursor
    if rank == 0:
        print(f"{world_size} ranks start at epoch {start.epoch}, step {start.step}")
    done, here = 0, torch.zeros_like(times)
    filled = torch.zeros(2, dtype=torch.int64)  # tokens, and rows
    for epoch in range(start.epoch, EPOCHS):
        loader.set_epoch(epoch)
        for bins in loader:
            optimizer.zero_grad()
            answers = loader.step_total(chats.asked)  # tokens that count, over all ranks
            for i, row in enumerate(bins, 1):
                with nullcontext() if i == len(bins) else model.no_sync():
                    logits, labels = logits_of(model, row)[:-1], row["labels"][1:]
                    loss = cross_entropy(logits, labels, reduction="sum", ignore_index=UNTRAINED)
                    (loss * world_size / answers).backward()
                here[epoch, row["index"]] += 1
                filled += torch.tensor([len(row["input_ids"]), 1])
            optimizer.step()
            done += 1
            if done == options.max_steps:
                break
        if done == options.max_steps:
            break

    for sums in (here, filled):
        dist.all_reduce(sums)
    times += here
    if rank == 0:
        state = {name: part.state_dict() for name, part in parts.items()}
        torch.save({**state, "times": times}, new := options.checkpoint.with_suffix(".new"))
        new.replace(options.checkpoint)  # whole, even if the run is killed
        print(f"{done} steps, rows {filled[0] / (filled[1] * MAX_LENGTH):.1%} full")
        for epoch in range(EPOCHS):
            print(f"epoch {epoch}: {times[epoch].eq(1).sum()} of {NUM} chats once")


def main() -> None:
    """Set up the ranks, and train on all of them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--checkpoint", type=Path, required=True)
    parser.add_argument("--max-steps", type=int, help="stop after this many steps")
    dist.init_process_group("gloo")
    train(parser.parse_args())  # its model must be gone before its group
    dist.barrier()  # all ranks leave together
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
