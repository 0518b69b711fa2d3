"""Megatron's indexed datasets, read by a plan, with the fields that GPTDataset returns."""

from __future__ import annotations

from typing import Any

import numpy as np
from megatron.core.datasets.gpt_dataset import GPTDataset, GPTDatasetConfig
from megatron.core.datasets.indexed_dataset import IndexedDataset
from megatron.core.datasets.utils import Split

from indexplan import IndexPlanError
from indexplan.errors import counted, invalid, shown
from indexplan_torch.items import Piece


class Samples(GPTDataset):
    """Megatron's `.bin` and `.idx` files as a dataset of windows, for plans of `DocumentWindows`.

    A window has the fields of `GPTDataset`, which makes them: tokens, labels, loss_mask,
    position_ids, and attention_mask if the config asks for it. Which documents a window is made of
    comes from the plan instead of three index arrays.

    Parameters
    ----------
    indexed : IndexedDataset, or list of IndexedDataset
        The documents. Several are the sources of a `Mixture` in the same sequence, as in a blend; a
        window then has a "dataset_id" too, as in `BlendedDataset`.
    config : GPTDatasetConfig
        Megatron's own, from which are taken sequence_length, add_extra_token_to_sequence, the
        tokenizer, reset_position_ids, reset_attention_mask, eod_mask_loss and
        create_attention_mask. The plan's order says what blend, split and random_seed would.

    Raises
    ------
    IndexPlanError
        If indexed or config is of another class, or documents have modes (are multimodal). On
        reading: if it is asked for something other than a window of
        `sequence_length + add_extra_token_to_sequence` tokens.
    """

    def __init__(self, indexed: Any, config: Any) -> None:
        self.several = isinstance(indexed, list | tuple)
        self.sources = tuple(indexed) if self.several else (indexed,)
        for each in self.sources or (indexed,):
            if not isinstance(each, IndexedDataset) or each.multimodal:
                rule = "an IndexedDataset of text, or a list of them"
                cure = "pass megatron.core.datasets.indexed_dataset.IndexedDataset(prefix)"
                raise invalid("indexed", rule, each, cure)
        if not isinstance(config, GPTDatasetConfig):
            cure = "pass Megatron's config of its datasets"
            raise invalid("config", "a GPTDatasetConfig", config, cure)
        self.ends = np.cumsum([len(each) for each in self.sources])
        first = self.sources[0]
        documents = np.arange(len(first), dtype=np.int32)
        super().__init__(first, first.path_prefix, documents, None, Split.train, config)

    def _build_document_sample_shuffle_indices(self) -> Any:
        return None, None, None  # a plan takes their place

    def __len__(self) -> int:
        """Return the number of documents of all sources."""
        return int(self.ends[-1])

    def __getitem__(self, asked: Any) -> dict[str, Any]:
        """Return a window, asked for by the parts of documents that it is made of."""
        fields: dict[str, Any] = super().__getitem__(asked)
        if self.several:
            fields = {"dataset_id": self._source(asked[0].sample), **fields}
        return fields

    def _source(self, document: int) -> Any:
        return np.searchsorted(self.ends, document, "right").astype(np.int16)  # as Megatron's

    def _query_document_sample_shuffle_indices(self, idx: Any) -> tuple[Any, Any]:
        """Return the tokens of a window and its documents, for `GPTDataset.__getitem__`."""
        if not isinstance(idx, list) or not idx or not isinstance(idx[0], Piece):
            cure = "read it through a plan of indexplan.DocumentWindows"
            raise invalid("a window", "a list of Piece(sample, start, stop)", idx, cure)
        source = self._source(idx[0].sample)
        before = int(self.ends[source]) - len(self.sources[source])
        parts = [
            self.sources[source].get(sample - before, start, stop - start)
            for sample, start, stop in idx
        ]
        text = np.concatenate(parts, dtype=np.int64)
        extra = int(self.config.add_extra_token_to_sequence)
        if len(text) != self.config.sequence_length + extra:
            length = self.config.sequence_length
            cure = f"make it with DocumentWindows(..., length={length}, overlap={extra})"
            rule = f"must have {counted(length + extra, 'token')}, as the config says"
            raise IndexPlanError("a window", rule, shown(len(text)), cure)
        return text, np.array([piece.sample for piece in idx], dtype=np.int64)
