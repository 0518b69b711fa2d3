"""An example of each order, and of each function that helps to make one, for its page."""

from __future__ import annotations

COMMAND = "indexplan build run.plan --batch-size 4 \\\n    {options}"
# what comes after that; in .npy files, a number for each sample
EXAMPLES = {
    "BlockShuffle": "--num-samples 1e6 --order 'BlockShuffle(block_size=4096, seed=7)'",
    "ClassBalanced": "--order \"ClassBalanced('labels.npy')\"",
    "ClassBatches": "--order \"ClassBatches('labels.npy', classes=2, per_class=4)\"",
    "DocumentWindows": "--order \"DocumentWindows('lengths.npy', length=128)\"",
    "Epochs": "--num-samples 1e6 --order 'Epochs(Shuffle(), 50000)'",
    "Grouped": "--order \"Grouped('labels.npy', batch_size=8)\"",
    "LengthGrouped": "--order \"LengthGrouped('lengths.npy', batch_size=8)\"",
    "LocalShuffle": "--num-samples 1e6 --order 'LocalShuffle(window=1000)'",
    "Mixture": (
        "--order \"Mixture({'web': Shuffle(7000), 'code': Shuffle(3000, seed=1)}, "
        "{'web': 0.6, 'code': 0.4})\""
    ),
    "Packed": "--order \"Packed('lengths.npy', max_length=512)\"",
    "Part": "--order 'Part(1000, [900, 100], [1])'",
    "Repeat": "--num-samples 1e6 --order 'Repeat(Shuffle(), copies=4)'",
    "Sequential": "--num-samples 1e6 --order 'Sequential()'",
    "ShardShuffle": "--shards sizes.npy --order 'ShardShuffle(lanes=4, stripe=64)'",
    "Shuffle": "--num-samples 1e6 --order 'Shuffle(seed=7)'",
    "Skipped": "--order \"Skipped(Shuffle(1000), [(0, 400, 440, 'drop')])\"",
    "Subset": "--num-samples 1e6 --order 'Subset(Shuffle(1000), range(1000))'",
    "TokenBudget": "--order \"TokenBudget('lengths.npy', max_tokens=2048)\"",
    "TokenWindows": "--num-samples 1e6 --order 'TokenWindows(length=1024)'",
    "Weighted": "--order \"Weighted('weights.npy')\"",
    "Without": "--order 'Without(Shuffle(1000), [7, 123, 456], since=[(0, 400, 3)])'",
    "Split": "--order \"Subset(Shuffle(900), Split(1000, {'train': 9, 'val': 1})['train'], 1000)\"",
    "curriculum": "--order \"curriculum('lengths.npy', [(0, 0.5), (3000, 1.0)])\"",
    "folds": "--order 'Subset(Shuffle(800), folds(1000, 5)[0][0], 1000)'",
    "pieces": "--order \"Packed(pieces('lengths.npy', 256).lengths, max_length=256)\"",
    "repeat_factors": (
        "--order \"Weighted(repeat_factors('image_ids.npy', 'category_ids.npy', 0.1, 1000))\""
    ),
}
# what text needs in place of what Python takes
IN_TEXT = {
    "Without": (
        "In text, since is a list of (epoch, position, number of samples), one for each time that "
        "samples were excluded. The numbers add up to the samples, which are listed in that order."
    ),
    "Skipped": (
        "Each skip is (epoch, start, stop, 'drop' or 'later'). Positions are places in the epoch's "
        "order, counted from 0."
    ),
}


def example_of(name: str) -> str:
    """Return a command that works; empty for an order of one's own."""
    return COMMAND.format(options=EXAMPLES[name]) if name in EXAMPLES else ""
