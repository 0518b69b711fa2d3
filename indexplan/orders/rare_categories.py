"""How often to read each image in a dataset with rare categories."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from indexplan.errors import integer, wrong
from indexplan.keywords import named
from indexplan.orders.arguments import as_int64
from indexplan.orders.columns import INTEGERS, LONGEST_RANGE, Column, Numbers


@named
def repeat_factors(
    image_ids: Numbers, category_ids: Numbers, threshold: float, num_samples: int
) -> NDArray[np.float64]:
    """Return how often to read each image of a dataset so that rare categories are read more often.

    For detection and segmentation, where an image has several categories. Pass the result to
    `Weighted`. A category in a fraction f of the images gets the factor max(1, sqrt(threshold /
    f)). An image gets the largest factor of its categories, or 1 if it has none.

    Parameters
    ----------
    image_ids, category_ids : Column, array_like of int or path, shape (annotations,)
        The image of each annotation, from 0 to num_samples - 1, and its category.
    threshold : float
        Categories in a smaller fraction of the images than this are rare; LVIS uses 0.001.
    num_samples : int
        Images in the dataset, 1 <= num_samples <= 2**27.

    Returns
    -------
    numpy.ndarray
        float64, shape (num_samples,), at least 1: weights for `Weighted`.

    Raises
    ------
    IndexPlanError
        If num_samples is out of range, the ids are not integers or differ in number, an image is
        not in the dataset, or the threshold is not a number above 0 and up to 1.

    References
    ----------
    Gupta, Dollar and Girshick 2019, "LVIS: A Dataset for Large Vocabulary Instance Segmentation".

    Examples
    --------
    >>> import indexplan as ip
    >>> factors = repeat_factors([0, 0, 1, 2, 3], [7, 7, 7, 7, 9], threshold=1.0, num_samples=4)
    >>> factors.round(3)
    array([1.155, 1.155, 1.155, 2.   ])
    >>> ip.Weighted(factors, epoch_size=round(factors.sum())).count(0, range(4))
    array([2, 1, 1, 1])
    """
    num_samples = integer("num_samples", num_samples, 1, LONGEST_RANGE + 1, "pass len(dataset)")
    images, categories = _ids("image_ids", image_ids), _ids("category_ids", category_ids)
    if images.ndim != 1 or images.shape != categories.shape:
        cure = "pass an image and a category for each annotation"
        rule = f"of the same shape as image_ids, {images.shape}"
        raise wrong("category_ids", rule, categories.shape, cure)
    if images.size and not 0 <= images.min() <= images.max() < num_samples:
        bad = int(images[np.argmax((images < 0) | (images >= num_samples))])
        cure = "number the images as the dataset does"
        raise wrong("image_ids", f"from 0 to {num_samples - 1}", bad, cure)
    limit = _fraction(threshold)
    numbers, category = np.unique(categories, return_inverse=True)
    category = category.ravel()
    by_image = np.lexsort((category, images))
    images, category = images[by_image], category[by_image]
    first = np.ones(len(images), np.bool_)  # marks one annotation of each category in an image
    first[1:] = (images[1:] != images[:-1]) | (category[1:] != category[:-1])
    frequency = np.bincount(category[first], minlength=len(numbers)) / num_samples
    factors = np.ones(num_samples)
    np.maximum.at(factors, images, np.sqrt(limit / frequency)[category])
    return factors


def _ids(what: str, values: Any) -> NDArray[np.int64]:
    if isinstance(values, Column | str | os.PathLike):
        return Column.of(values, INTEGERS, what).array.astype(np.int64)
    return as_int64(what, values)


def _fraction(threshold: Any) -> float:
    """Return a threshold as a float, or raise `IndexPlanError`."""
    try:
        number = float(threshold)
    except Exception:  # TypeError, or whatever a user's class raises
        number = np.nan
    if isinstance(threshold, bool | np.bool_ | str | bytes) or not 0 < number <= 1:
        rule = "a fraction of the images, above 0 and up to 1"
        raise wrong("threshold", rule, threshold, "pass a small one, such as 0.001")
    return number
