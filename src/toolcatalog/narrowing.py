"""What changed in a description of inputs or outputs, and whether a value may be less there or
more. Pure.

A change makes what a value may be narrower or wider, or other. Callers write inputs and read
outputs, so what is additive on one side is breaking on the other: an input that takes less refuses
what was sent before, an output that may be more brings what no caller knows. Names are the
exception: one that goes is breaking on both sides, one that comes is not, unless callers must now
supply it.

A rule is found by the keyword that differs. What differs and has no rule is breaking, so nothing
that changes is ever left untold.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from toolcatalog.parameters import BRANCHES, LOWER, NESTING, UPPER, type_of
from toolcatalog.wording import (
    ABSENT,
    Change,
    Kind,
    became,
    canonical,
    code,
    codes,
    identical,
    reworded,
    same,
    step,
    told,
)

Description = Mapping[str, Any]

_UNKNOWN = "changed in a way that is not understood"
_READ = ("description", "title", "examples")  # what is there for people and models to read
_BESIDE = frozenset(("required", "nullable", "default", *_READ))  # what does not hang on the type
_IMPLIED = {  # what a description means that does not say it
    "required": False, "nullable": False, "uniqueItems": False, "minLength": 0, "minItems": 0, "additionalProperties": True,
    "description": "", "properties": {},
}  # fmt: skip


class Side(NamedTuple):
    """Inputs or outputs: what it is for callers if fewer values are allowed or more, and how that
    is said.
    """

    narrower: Kind
    wider: Kind
    less: str
    more: str


INPUT = Side("breaking", "additive", "no longer takes", "takes")
OUTPUT = Side("additive", "breaking", "is no longer", "may be")


class _Difference(NamedTuple):
    """A keyword that two descriptions do not say alike; `ABSENT` where one says nothing of it."""

    place: str
    key: str
    before: Any
    after: Any
    side: Side

    def narrower(self, what: str) -> Change:
        return Change(self.side.narrower, self.place, what)

    def wider(self, what: str) -> Change:
        return Change(self.side.wider, self.place, what)

    def as_text(self, what: str) -> Change:
        return Change("text", self.place, what)

    def became(self) -> str:
        return became(self.key, self.before, self.after)


def or_unknown(place: str, found: Iterable[Change]) -> list[Change]:
    """What a rule found of two values that differ: never nothing."""
    return [*found] or [Change("breaking", place, _UNKNOWN)]


def parameters(
    prefix: str, before: Mapping[str, Description], after: Mapping[str, Description], side: Side
) -> Iterator[Change]:
    """What changed from some parameters to others, or from properties to others; `prefix` is the
    beginning of their places. The order of those that stay is their author's, and served.
    """
    for name in sorted(before.keys() | after.keys()):
        place = prefix + step(name)
        if name not in after:
            yield Change("breaking", place, "was removed")
        elif name not in before:
            yield _new(place, after[name], side)
        elif not identical(before[name], after[name]):
            yield from _of_one(place, before[name], after[name], side)
    if [name for name in before if name in after] != [name for name in after if name in before]:
        what = "parameters" if prefix.endswith(" ") else "properties"
        yield Change("text", prefix.rstrip(" ."), f"lists its {what} in another order")


def _new(place: str, described: Description, side: Side) -> Change:
    if side is OUTPUT:
        return Change("additive", place, "is new")
    required = bool(described.get("required"))
    return Change(
        "breaking" if required else "additive",
        place,
        f"is new and {'required' if required else 'optional'}",
    )


def _of_one(place: str, before: Description, after: Description, side: Side) -> list[Change]:
    """What changed in a description that differs."""
    old, new = _as_written(before), _as_written(after)
    keys, found = old.keys() | new.keys(), []
    # what is said of values of one type has nothing to do with what is said of another
    if _is_of_another_kind(old, new):
        keys &= _BESIDE
        found.append(_another_kind(place, old, new, side))
    for key in sorted(keys):
        found += _of_key(place, key, old, new, side)
    if not found and same(before, after):
        found.append(Change("text", place, "is written in another way"))
    return or_unknown(place, found)


def _as_written(described: Description) -> Description:
    """A description without the type that it is served with where the author gave branches alone."""
    rest = {key: value for key, value in described.items() if key != "type"}
    has_branches = any(rest.get(key) for key in BRANCHES)
    return (
        rest
        if has_branches and "type" in described and type_of(rest) == described["type"]
        else described
    )


def _is_of_another_kind(before: Description, after: Description) -> bool:
    if any((key in before) != (key in after) for key in BRANCHES):
        return True
    types = {before.get("type", ""), after.get("type", "")}
    return len(types) == 2 and "" not in types and types != {"integer", "number"}


def _another_kind(place: str, before: Description, after: Description, side: Side) -> Change:
    """A type instead of another; no more than wider where the old one, as it was, is among the
    branches of the new one.
    """
    old, new = _alternatives(before), _alternatives(after)
    if old == new:
        return Change("text", place, "is written in another way")
    kind = side.wider if old < new else side.narrower if new < old else "breaking"
    was, now = _types(before), _types(after)
    return Change(
        kind,
        place,
        f"type {was} became {now}" if was != now else "is described by other alternatives",
    )


def _alternatives(described: Description) -> set[bytes]:
    """What a value may be, one of these, each as one text; the branches only where nothing is said
    beside them.
    """
    asked = {key: value for key, value in described.items() if key not in _BESIDE}
    return {
        canonical(_bare(one)) for one in (asked["anyOf"] if asked.keys() == {"anyOf"} else [asked])
    }


def _bare(described: Description) -> dict[str, Any]:
    """A description without what is there to be read, on all levels."""
    return {
        key: _bare_within(key, value)
        for key, value in _as_written(described).items()
        if key not in _READ
    }


def _bare_within(key: str, value: Any) -> Any:
    if key == "properties":
        return {name: _bare(one) for name, one in value.items()}
    if key in BRANCHES:
        return [_bare(one) for one in value]
    return (
        _bare(value)
        if key in ("items", "additionalProperties") and isinstance(value, Mapping)
        else value
    )


def _types(described: Description) -> str:
    if "type" in described:
        return str(described["type"])
    return " or ".join(
        dict.fromkeys(type_of(branch) for key in BRANCHES for branch in described.get(key, ()))
    )


def _of_key(
    place: str, key: str, before: Description, after: Description, side: Side
) -> list[Change]:
    old, new = (said.get(key, _IMPLIED.get(key, ABSENT)) for said in (before, after))
    is_equal = identical if key in NESTING else same
    if not is_equal(old, new):
        return or_unknown(
            place, _RULES.get(key, _not_understood)(_Difference(place, key, old, new, side))
        )
    if (key in before) == (key in after):
        return []
    if key in after:
        return [Change("text", place, f"says {key} {told(new)} now, as it meant before")]
    return [Change("text", place, f"no longer says {key} {told(old)}, and still means it")]


def _not_understood(it: _Difference) -> Iterator[Change]:
    yield Change("breaking", it.place, f"{code(it.key)} {_UNKNOWN}")


# Keywords


def _required(it: _Difference) -> Iterator[Change]:
    yield it.narrower("is required now") if it.after else it.wider("is optional now")


def _nullable(it: _Difference) -> Iterator[Change]:
    yield it.wider("may now be null") if it.after else it.narrower("may no longer be null")


def _unique(it: _Difference) -> Iterator[Change]:
    yield it.narrower("no item may repeat now") if it.after else it.wider("items may repeat now")


def _type(it: _Difference) -> Iterator[Change]:
    """What is not of another kind: integer and number, and a type beside branches."""
    is_wider = it.after is ABSENT or it.before == "integer"
    yield it.wider(it.became()) if is_wider else it.narrower(it.became())


def _lower(it: _Difference) -> Iterator[Change]:
    is_narrower = it.before is ABSENT or (it.after is not ABSENT and it.after > it.before)
    yield it.narrower(it.became()) if is_narrower else it.wider(it.became())


def _upper(it: _Difference) -> Iterator[Change]:
    is_narrower = it.before is ABSENT or (it.after is not ABSENT and it.after < it.before)
    yield it.narrower(it.became()) if is_narrower else it.wider(it.became())


def _text_form(it: _Difference) -> Iterator[Change]:
    """A pattern or a format: of two of them nobody can tell which allows more."""
    kind = (
        it.side.narrower
        if it.before is ABSENT
        else it.side.wider
        if it.after is ABSENT
        else "breaking"
    )
    yield Change(kind, it.place, it.became())


def _enum(it: _Difference) -> Iterator[Change]:
    if it.before is ABSENT:
        yield it.narrower(f"{it.side.more} only {codes(it.after)} now")
    elif it.after is ABSENT:
        yield it.wider(f"{it.side.more} other values than {codes(it.before)} now")
    else:
        yield from _enum_values(it)


def _enum_values(it: _Difference) -> Iterator[Change]:
    old, new = (
        {canonical(value): value for value in it.before},
        {canonical(value): value for value in it.after},
    )
    if gone := [value for text, value in old.items() if text not in new]:
        yield it.narrower(f"{it.side.less} {codes(gone)}")
    if come := [value for text, value in new.items() if text not in old]:
        unknown = ", which callers may not know" if it.side is OUTPUT else ""
        yield it.wider(f"{it.side.more} {codes(come)} now{unknown}")
    if old.keys() == new.keys():
        yield it.as_text("lists its values in another way")


def _default(it: _Difference) -> Iterator[Change]:
    """A default is part of the contract: who leaves the value out gets another one when it changes,
    and nothing sure when it goes.

    One that is new takes nothing from anybody: nothing was promised before.
    """
    if it.before is ABSENT:
        yield Change("additive", it.place, it.became())
    else:
        yield Change(
            "breaking", it.place, f"{it.became()}: it counts wherever the value is left out"
        )


def _items(it: _Difference) -> Iterator[Change]:
    if it.before is ABSENT:
        yield it.narrower("items may no longer be anything")
    elif it.after is ABSENT:
        yield it.wider("items may be anything now")
    else:
        yield from _of_one(f"{it.place}[]", it.before, it.after, it.side)


def _properties(it: _Difference) -> Iterator[Change]:
    yield from parameters(f"{it.place}.", it.before, it.after, it.side)


def _other_properties(it: _Difference) -> Iterator[Change]:
    """Whether there may be properties beyond those named: like names, they come and go in the same
    way on both sides.
    """
    if isinstance(it.before, Mapping) and isinstance(it.after, Mapping):
        yield from _of_one(f"{it.place}.*", it.before, it.after, it.side)
    elif it.after is False:
        yield Change("breaking", it.place, "may no longer have other properties")
    elif it.before is False:
        yield Change("additive", it.place, "may have other properties now")
    elif it.before is True:
        yield it.narrower("other properties may no longer be anything")
    else:
        yield it.wider("other properties may be anything now")


def _branches(it: _Difference) -> Iterator[Change]:
    """Branches that mean the same belong together, the others by their order."""
    pairs = _paired(it.before, it.after)
    for old, new in pairs:
        if not identical(it.before[old], it.after[new]):
            yield from _of_one(
                f"{it.place}.{it.key}[{new}]", it.before[old], it.after[new], it.side
            )
    for at in sorted({*range(len(it.before))} - {old for old, _ in pairs}):
        yield Change(
            it.side.narrower, f"{it.place}.{it.key}[{at}]", f"was removed: {_types(it.before[at])}"
        )
    for at in sorted({*range(len(it.after))} - {new for _, new in pairs}):
        yield Change(it.side.wider, f"{it.place}.{it.key}[{at}]", f"is new: {_types(it.after[at])}")
    order = [new for _, new in sorted(pairs)]
    if order != sorted(order):
        yield it.as_text(f"{it.key} is in another order")


def _paired(before: Sequence[Description], after: Sequence[Description]) -> list[tuple[int, int]]:
    """Which branch became which, by their numbers: first those that are the same, then those that
    ask the same, then by order.
    """
    olds, news = [*range(len(before))], [*range(len(after))]
    pairs: list[tuple[int, int]] = []
    for form in (dict, _bare):
        places: dict[bytes, list[int]] = {}
        for new in news:
            places.setdefault(canonical(form(after[new])), []).append(new)
        found = {
            old: alike.pop(0)
            for old in olds
            if (alike := places.get(canonical(form(before[old])), []))
        }
        olds = [old for old in olds if old not in found]
        news = [new for new in news if new not in found.values()]
        pairs += found.items()
    return [*pairs, *zip(olds, news, strict=False)]


def _for_reading(it: _Difference) -> Iterator[Change]:
    if it.key == "title":
        yield it.as_text(it.became())
    elif it.key == "examples":
        yield it.as_text("has other examples")
    else:
        yield it.as_text(f"description {reworded(it.before, it.after)}")


_RULES: dict[str, Callable[[_Difference], Iterable[Change]]] = {
    "required": _required,
    "nullable": _nullable,
    "uniqueItems": _unique,
    "type": _type,
    "pattern": _text_form,
    "format": _text_form,
    "enum": _enum,
    "default": _default,
    "items": _items,
    "properties": _properties,
    "additionalProperties": _other_properties,
    **dict.fromkeys(LOWER, _lower),
    **dict.fromkeys(UPPER, _upper),
    **dict.fromkeys(BRANCHES, _branches),
    **dict.fromkeys(_READ, _for_reading),
}
