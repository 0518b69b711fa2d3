"""Errors of weighted draws."""

from __future__ import annotations

import numpy as np

import indexplan as ip
from tests.errors.catalogue.made import Case

CURE = "pass a number for each sample, 0 for those that are never read"
NUMBERS = "pass numbers in one dimension, or the path of a .npy file of them"

CASES: list[Case] = [
    (
        "weights in two dimensions",
        lambda: ip.Weighted(np.ones((2, 3))),
        f"weights must be a flat list or array of floats; got array([[1., 1., 1.], "
        f"[1., 1., 1.]]); {NUMBERS}",
    ),
    (
        "weights in rows of two",
        lambda: ip.Weighted([[1.0, 2.0], [3.0, 4.0]]),
        f"weights must be a flat list or array of floats; got [[1.0, 2.0], [3.0, 4.0]]; {NUMBERS}",
    ),
    (
        "a weight that is no number",
        lambda: ip.Weighted([1, 2, float("nan")]),
        f"the weight of sample 2 must be finite and not negative; got nan; {CURE}",
    ),
    (
        "an infinite weight",
        lambda: ip.Weighted([1, float("inf"), 2]),
        f"the weight of sample 1 must be finite and not negative; got inf; {CURE}",
    ),
    (
        "a negative weight",
        lambda: ip.Weighted([*[1] * 200_000, -0.5]),
        f"the weight of sample 200000 must be finite and not negative; got -0.5; {CURE}",
    ),
    (
        "no weight above 0",
        lambda: ip.Weighted([0, 0.0, -0.0]),
        f"weights need a number above 0; got 3 times 0; {CURE}",
    ),
    (
        "no weights",
        lambda: ip.Weighted([]),
        f"weights must be at least one number; got 0; {CURE}",
    ),
    (
        "weights that no float holds",
        lambda: ip.Weighted([2**53 + 1, 1]),
        "weights must be integers up to 2**53, which floats hold exactly; got 9007199254740993; "
        "divide them",
    ),
    (
        "a mask as weights",
        lambda: ip.Weighted([True, False]),
        "weights must be a flat list or array of floats; got [True, False]; pass numbers, or keep "
        "the samples of a mask with indexplan.Subset",
    ),
    (
        "text as weights",
        lambda: ip.Weighted(["1", "2"]),
        f"weights must be a flat list or array of floats; got ['1', '2']; {NUMBERS}",
    ),
    (
        "draws of nothing",
        lambda: ip.Weighted([1, 2], epoch_size=0),
        "epoch_size must be an integer from 1 to 2**61 - 1; got 0; pass how many samples an epoch "
        "reads",
    ),
    (
        "too many draws",
        lambda: ip.Weighted([1, 2], epoch_size=2**61),
        "epoch_size must be an integer from 1 to 2**61 - 1; got 2305843009213693952; pass how many "
        "samples an epoch reads",
    ),
    (
        "no repeats at all",
        lambda: ip.Weighted([1, 2], max_repeats=0),
        "max_repeats must be an integer from 1 to 2**61 - 1; got 0; pass how often an epoch may "
        "read a sample, or leave it out",
    ),
    (
        "too few repeats",
        lambda: ip.Weighted([1, 0, 3], epoch_size=7, max_repeats=3),
        "epoch_size must be at most 6, max_repeats for each weight that is not 0; got 7; lower "
        "it, or raise max_repeats",
    ),
    (
        "weights of other lengths",
        lambda: ip.Weighted([1, 2]).updated(3, [1, 2, 3]),
        f"weights must be 2 numbers, as the first array has; got 3; {CURE}",
    ),
    (
        "weights from the middle on",
        lambda: ip.Weighted([(3, [1, 2])]),
        "an epoch of weights must be 0, the first one; got 3; begin with 0, and let epochs rise",
    ),
    (
        "weights that go back",
        lambda: ip.Weighted([(0, [1, 2]), (3, [1, 2]), (3, [2, 1])]),
        "an epoch of weights must be above 3, the one before; got 3; begin with 0, and let epochs "
        "rise",
    ),
    (
        "weights with and without an epoch",
        lambda: ip.Weighted([(0, [1, 2]), [1, 2, 3]]),
        "weights must be one array, or arrays with their epochs; got [1, 2, 3]; pass [(0, "
        "weights), (7, others)]",
    ),
    (
        "too many rows of weights",
        lambda: ip.Weighted([(0, [1])] * (2**16 + 1)),
        "weights must be at most 65536 arrays; got 65537; leave out arrays of epochs that are over",
    ),
    (
        "annotations without categories",
        lambda: ip.repeat_factors([0, 1], [3], 0.1, 2),
        "category_ids must be of the same shape as image_ids, (2,); got (1,); pass an image and a "
        "category for each annotation",
    ),
    (
        "more images than memory holds",
        lambda: ip.repeat_factors([0, 1], [3, 3], 0.1, 2**40),
        "num_samples must be an integer from 1 to 134217728; got 1099511627776; pass len(dataset)",
    ),
    (
        "annotations of no image",
        lambda: ip.repeat_factors([0, 2], [3, 3], 0.1, 2),
        "image_ids must be from 0 to 1; got 2; number the images as the dataset does",
    ),
    (
        "a threshold of nothing",
        lambda: ip.repeat_factors([0, 1], [3, 3], 0.0, 2),
        "threshold must be a fraction of the images, above 0 and up to 1; got 0.0; pass a small "
        "one, such as 0.001",
    ),
]
