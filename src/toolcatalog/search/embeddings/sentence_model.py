"""The sentence model: texts to tokens, and tokens to vectors, with onnxruntime and tokenizers.

Both libraries are slow to import, and belong to the extra `semantic`.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from tokenizers import Tokenizer

_INPUTS = {"input_ids", "attention_mask", "token_type_ids"}


class SentenceModel:
    """A model in the ONNX format and its tokenizer.

    Raises what onnxruntime and tokenizers raise if a file is invalid.
    """

    def __init__(self, network: bytes, tokenizer: bytes) -> None:
        options = onnxruntime.SessionOptions()
        # one thread: other processes and requests use the other cores
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 3
        self._session = onnxruntime.InferenceSession(
            network, options, providers=["CPUExecutionProvider"]
        )
        self._tokenizer = Tokenizer.from_buffer(tokenizer)
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        self._inputs = {item.name for item in self._session.get_inputs()}

    def check(self, dimensions: int) -> None:
        """Raise ValueError unless the model maps tokens to vectors of `dimensions` numbers."""
        if unknown := sorted(self._inputs - _INPUTS):
            raise ValueError(f"it needs the input {unknown[0]}")
        tokens = self.tokenize(["word"])[0]
        if not tokens:
            raise ValueError("its tokenizer finds no tokens")
        shape = self.encode_tokens(np.array([tokens]), np.ones((1, len(tokens)), np.int64)).shape
        if shape[:2] != (1, len(tokens)) or len(shape) != 3:
            raise ValueError("its first output is not a vector for each token")
        if shape[2] != dimensions:
            raise ValueError(f"its vectors have {shape[2]} numbers, not {dimensions}")

    def tokenize(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the tokens of each text."""
        return [encoding.ids for encoding in self._tokenizer.encode_batch(texts)]

    def encode_tokens(self, ids: NDArray[np.int64], mask: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return a vector for each token of each text.

        `ids` and `mask` have a row for each text; `mask` is 0 where a shorter text is padded.
        """
        inputs: dict[str, Any] = {
            "input_ids": ids,
            "attention_mask": mask,
            "token_type_ids": np.zeros_like(ids),
        }
        chosen = {name: inputs[name] for name in self._inputs}
        vectors: NDArray[np.float32] = self._session.run(None, chosen)[0]
        return vectors
