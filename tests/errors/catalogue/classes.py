"""Errors of orders by class, and of shuffles inside windows."""

from __future__ import annotations

import indexplan as ip
from tests.errors.catalogue.made import Case

LABELS = [3, 3, 3, 5, 5, 9]

CASES: list[Case] = [
    (
        "a window of nothing",
        lambda: ip.LocalShuffle(10, window=0),
        "window must be an integer from 1 to 2**63 - 1; got 0; pass how many are shuffled together",
    ),
    (
        "labels of nothing",
        lambda: ip.ClassBalanced([]),
        "labels must be at least one integer; got 'none'; pass the class of each sample, an "
        "integer",
    ),
    (
        "labels that are text",
        lambda: ip.ClassBatches(["cat", "dog"], 1, 1),
        "labels must be a flat list or array of integers; got ['cat', 'dog']; number the names: "
        "numpy.unique(names, return_inverse=True)[1]",
    ),
    (
        "balanced epochs of nothing",
        lambda: ip.ClassBalanced(LABELS, 0),
        "epoch_size must be an integer from 1 to 4611686018427387904; got 0; leave it out for the "
        "number of samples",
    ),
    (
        "weights of other classes",
        lambda: ip.ClassBalanced(LABELS, weights=[1, 2]),
        "weights must be 3 numbers, one for each class; got 2; pass one number for each class, by "
        "rising label, or a dict of label to number",
    ),
    (
        "weights of labels that there are not",
        lambda: ip.ClassBalanced(LABELS, weights={3: 1, 5: 1, 7: 2}),
        "weights must be given for each label, and for no other; got 'one for 7'; pass one number "
        "for each class, by rising label, or a dict of label to number",
    ),
    (
        "a negative weight of a class",
        lambda: ip.ClassBalanced(LABELS, weights=[1, -2, 3]),
        "weights must be finite and not negative, and not all 0; got -2.0; pass one number for "
        "each class, by rising label, or a dict of label to number",
    ),
    (
        "classes of no weight",
        lambda: ip.ClassBalanced(LABELS, weights=[0, 0, 0]),
        "weights must be finite and not negative, and not all 0; got 'only zeros'; pass one "
        "number for each class, by rising label, or a dict of label to number",
    ),
    (
        "a class that no epoch is large enough for",
        lambda: ip.ClassBalanced(LABELS, weights=[1e300, 1e-300, 0]),
        "epoch_size must be large enough to read each class, label 5 too; got 6; give that label a "
        "weight of 0, or more",
    ),
    (
        "an epoch that is too small for a class",
        lambda: ip.ClassBalanced(LABELS, weights=[1, 0.01, 0]),
        "epoch_size must be large enough to read each class, label 5 too; got 6; use 101 or more, "
        "or give that label a weight of 0",
    ),
    (
        "an epoch past the stream of classes",
        lambda: ip.ClassBalanced(LABELS, 2**60).take(4, 0),
        "epoch must be below 4, where the order's stream ends; got 4; use smaller epochs",
    ),
    (
        "batches of no class",
        lambda: ip.ClassBatches(LABELS, 0, 1),
        "classes must be an integer from 1 to 2**31 - 1; got 0; pass how many classes a "
        "batch holds",
    ),
    (
        "batches of no samples of a class",
        lambda: ip.ClassBatches(LABELS, 2, 0),
        "per_class must be an integer from 1 to 1073741823; got 0; pass how many samples "
        "of a class a batch holds",
    ),
    (
        "epochs of no batch",
        lambda: ip.ClassBatches(LABELS, 2, 1, 0),
        "epoch_size must be an integer from 1 to 2305843009213693952; got 0; leave it out for as "
        "many batches as the samples fill",
    ),
    (
        "small classes in other words",
        lambda: ip.ClassBatches(LABELS, 2, 1, short="drop"),
        "short must be one of error, repeat, leave_out; got 'drop'; leave it out for \"error\"",
    ),
    (
        "a small class",
        lambda: ip.ClassBatches([0, 0, 1], 1, 2),
        "each class must have 2 samples, as many as per_class; got 1 class with fewer, such as "
        'label 1 with 1; pass short="repeat" to read samples of these more than once in a batch, '
        'or short="leave_out"',
    ),
    (
        "small classes",
        lambda: ip.ClassBatches(LABELS, 2, 3),
        "each class must have 3 samples, as many as per_class; got 2 classes with fewer, such as "
        'label 5 with 2; pass short="repeat" to read samples of these more than once in a batch, '
        'or short="leave_out"',
    ),
    (
        "more classes than there are",
        lambda: ip.ClassBatches(LABELS, 4, 1),
        "classes must be at most 3, the number of classes (all); got 4; use fewer, or a smaller "
        "per_class",
    ),
    (
        "more classes than are large enough",
        lambda: ip.ClassBatches(LABELS, 3, 2, short="leave_out"),
        "classes must be at most 2, the number of classes (those that are not left out); got 3; "
        "use fewer, or a smaller per_class",
    ),
]
