"""A pool of parameter definitions as YAML text, from which each synthetic tool draws its own.

To write the parameters of a million tools one by one would take an hour; to draw them takes a
minute.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.vocabulary import ADJECTIVES, NOUNS, VERBS, Vocabulary

_POOL_SIZE = 4_000


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter: its name, and the lines of its description at an indent of two."""

    name: str
    text: str


class ParameterPool:
    """The pool; the same for the same seed."""

    def __init__(self, seed: int, words: Vocabulary) -> None:
        factory = _ParameterFactory(random.Random(f"shapes {seed}"), words)
        self.pool = [factory.draw() for _ in range(_POOL_SIZE)]

    def draw(self, rng: random.Random, count: int) -> dict[str, str]:
        """Draw up to `count` parameters with different names: name to text."""
        return {parameter.name: parameter.text for parameter in rng.choices(self.pool, k=count)}


class _ParameterFactory:
    def __init__(self, rng: random.Random, words: Vocabulary) -> None:
        self.rng = rng
        self.words = words
        self.kinds: list[tuple[Callable[[str], tuple[str, list[str]]], int]] = [
            (self._text, 30),
            (self._formatted, 12),
            (self._choice, 12),
            (self._integer, 14),
            (self._number, 4),
            (self._flag, 10),
            (self._texts, 8),
            (self._objects, 4),
            (self._object, 6),
            (self._either, 2),
        ]

    def draw(self) -> Parameter:
        """Create a parameter of a kind that is drawn by its weight."""
        kinds, weights = zip(*self.kinds, strict=True)
        noun = self.rng.choice(NOUNS)
        stem = f"{self.rng.choice(ADJECTIVES)}_{noun}" if self.rng.random() < 0.4 else noun
        name, lines = self.rng.choices(kinds, weights)[0](stem)
        return Parameter(name, "".join(f"    {line}\n" for line in lines))

    def sentence(self, min_words: int = 6, max_words: int = 16) -> str:
        """Create a sentence with a capital letter and a period."""
        return (
            " ".join(self.words.draw(self.rng, self.rng.randint(min_words, max_words))).capitalize()
            + "."
        )

    def _draw_words(self, count: int) -> list[str]:
        return [
            *dict.fromkeys(
                f"{self.rng.choice(ADJECTIVES)}-{self.rng.choice(NOUNS)}" for _ in range(count)
            )
        ]

    def _text(self, stem: str) -> tuple[str, list[str]]:
        limits = ["minLength: 1", "maxLength: 200"] if self.rng.random() < 0.2 else []
        sample = " ".join(self._draw_words(2))
        return stem, [
            "type: string",
            f"description: {self.sentence()}",
            *limits,
            f"examples: [{sample}]",
        ]

    def _formatted(self, stem: str) -> tuple[str, list[str]]:
        number = self.rng.randint(1000, 9999)
        name, format, sample = self.rng.choice(
            [
                ("at", "date-time", "'2026-03-14T09:30:00Z'"),
                ("date", "date", "'2026-03-14'"),
                ("email", "email", f"user{number}@example.com"),
                ("url", "uri", f"'https://example.com/{stem}/{number}'"),
                ("uuid", "uuid", f"6f9619ff-8b86-d011-b42d-00c04fc9{number}"),
            ]
        )
        return f"{stem}_{name}", [
            "type: string",
            f"description: {self.sentence()}",
            f"format: {format}",
            f"examples: [{sample}]",
        ]

    def _choice(self, stem: str) -> tuple[str, list[str]]:
        names = self._draw_words(self.rng.randint(3, 7))
        return f"{stem}_kind", [
            "type: string",
            f"description: {self.sentence()}",
            f"enum: [{', '.join(names)}]",
            f"default: {names[0]}",
        ]

    def _integer(self, stem: str) -> tuple[str, list[str]]:
        most = self.rng.choice((50, 100, 1000))
        limits = ["minimum: 1", f"maximum: {most}", f"default: {most // 5}"]
        return f"{stem}_count", [
            "type: integer",
            f"description: {self.sentence()}",
            *limits,
            f"examples: [{most // 2}]",
        ]

    def _number(self, stem: str) -> tuple[str, list[str]]:
        return f"{stem}_rate", [
            "type: number",
            f"description: {self.sentence()}",
            "minimum: 0",
            f"examples: [{self.rng.randint(1, 99)}.5]",
        ]

    def _flag(self, stem: str) -> tuple[str, list[str]]:
        return f"{self.rng.choice(VERBS)}_{stem}", [
            "type: boolean",
            f"description: {self.sentence()}",
            "default: false",
        ]

    def _texts(self, stem: str) -> tuple[str, list[str]]:
        items = ["items:", "  type: string", f"  description: {self.sentence(4, 8)}"]
        return f"{stem}_names", [
            "type: array",
            f"description: {self.sentence()}",
            *items,
            f"examples: [[{', '.join(self._draw_words(2))}]]",
        ]

    def _objects(self, stem: str) -> tuple[str, list[str]]:
        items = [
            "items:",
            "  type: object",
            f"  description: {self.sentence(4, 8)}",
            *(f"  {line}" for line in self._properties()),
        ]
        return f"{stem}_list", [
            "type: array",
            f"description: {self.sentence()}",
            "maxItems: 100",
            *items,
        ]

    def _object(self, stem: str) -> tuple[str, list[str]]:
        return f"{stem}_options", [
            "type: object",
            f"description: {self.sentence()}",
            *self._properties(),
        ]

    def _either(self, stem: str) -> tuple[str, list[str]]:
        branches = [
            f"  - {{type: {kind}, description: {self.sentence(3, 6)}}}"
            for kind in ("string", "integer")
        ]
        return f"{stem}_ref", [f"description: {self.sentence()}", "anyOf:", *branches]

    def _properties(self) -> list[str]:
        """Create two or three properties of an object."""
        lines = ["properties:"]
        for kind in self.rng.sample(
            [self._text, self._integer, self._flag, self._formatted], self.rng.choice((2, 3))
        ):
            name, inner = kind(self.rng.choice(NOUNS))
            lines += [f"  {name}:", *(f"    {line}" for line in inner)]
        return lines
