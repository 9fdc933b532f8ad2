"""Parameter changes: whether a description of inputs or outputs became narrower or wider.

A change allows fewer values, more values, or other ones. Callers write inputs and read outputs, so
a change that is additive on one side is breaking on the other. An input that accepts less rejects
what was sent before; an output that may be more returns what no caller knows. Names are the
exception: removing one is breaking on both sides, and adding one is not, unless callers must supply
it.

Each keyword has a rule. A difference without a rule is breaking, so every change is reported.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from toolcatalog.diff.change import (
    ABSENT,
    Change,
    Kind,
    are_equal,
    are_identical,
    describe_keyword_change,
    describe_text_change,
    format_name,
    format_value,
    quote_value,
    quote_values,
    to_canonical,
)
from toolcatalog.parameters import BRANCHES, LOWER_BOUNDS, NESTING, UPPER_BOUNDS, type_of

Description = Mapping[str, Any]

_UNKNOWN_CHANGE = "changed in a way that is not understood"
_ANNOTATIONS = ("description", "title", "examples")  # for people and models to read
_TYPE_INDEPENDENT = frozenset(
    ("required", "nullable", "default", *_ANNOTATIONS)
)  # keywords that apply to values of any type
_IMPLIED_VALUES = {  # the meaning of a keyword that is not set
    "required": False, "nullable": False, "uniqueItems": False, "minLength": 0, "minItems": 0, "additionalProperties": True,
    "description": "", "properties": {},
}  # fmt: skip


class Direction(NamedTuple):
    """Inputs or outputs: what fewer or more allowed values mean for callers, and the wording."""

    narrower: Kind
    wider: Kind
    less_phrase: str
    more_phrase: str


INPUT = Direction("breaking", "additive", "no longer takes", "takes")
OUTPUT = Direction("additive", "breaking", "is no longer", "may be")


class _Difference(NamedTuple):
    """A keyword that differs between two descriptions; `ABSENT` where it is not set."""

    place: str
    key: str
    before: Any
    after: Any
    direction: Direction

    def narrowing(self, what: str) -> Change:
        return Change(self.direction.narrower, self.place, what)

    def widening(self, what: str) -> Change:
        return Change(self.direction.wider, self.place, what)

    def text_change(self, what: str) -> Change:
        return Change("text", self.place, what)

    def describe(self) -> str:
        return describe_keyword_change(self.key, self.before, self.after)


def ensure_change(place: str, changes: Iterable[Change]) -> list[Change]:
    """Return the changes that a rule found for two values that differ, or an unknown change."""
    return [*changes] or [Change("breaking", place, _UNKNOWN_CHANGE)]


def compare_parameters(
    prefix: str,
    before: Mapping[str, Description],
    after: Mapping[str, Description],
    direction: Direction,
) -> Iterator[Change]:
    """Yield the changes between two sets of parameters or properties.

    `prefix` is the beginning of their places. The order of those on both sides is compared too,
    because the author chose it and it is served.
    """
    for name in sorted(before.keys() | after.keys()):
        place = prefix + format_name(name)
        if name not in after:
            yield Change("breaking", place, "was removed")
        elif name not in before:
            yield _added_parameter(place, after[name], direction)
        elif not are_identical(before[name], after[name]):
            yield from _compare_descriptions(place, before[name], after[name], direction)
    if [name for name in before if name in after] != [name for name in after if name in before]:
        what = "parameters" if prefix.endswith(" ") else "properties"
        yield Change("text", prefix.rstrip(" ."), f"lists its {what} in another order")


def _added_parameter(place: str, description: Description, direction: Direction) -> Change:
    if direction is OUTPUT:
        return Change("additive", place, "is new")
    required = bool(description.get("required"))
    return Change(
        "breaking" if required else "additive",
        place,
        f"is new and {'required' if required else 'optional'}",
    )


def _compare_descriptions(
    place: str, before: Description, after: Description, direction: Direction
) -> list[Change]:
    """Return the changes in a description that differs."""
    old, new = _without_served_type(before), _without_served_type(after)
    keys, found = old.keys() | new.keys(), []
    # keywords for one type cannot be compared with keywords for another
    if _has_other_type(old, new):
        keys &= _TYPE_INDEPENDENT
        found.append(_type_change(place, old, new, direction))
    for key in sorted(keys):
        found += _compare_keyword(place, key, old, new, direction)
    if not found and are_equal(before, after):
        found.append(Change("text", place, "is written in another way"))
    return ensure_change(place, found)


def _without_served_type(description: Description) -> Description:
    """Return a description without the type that is only derived from its branches."""
    rest = {key: value for key, value in description.items() if key != "type"}
    has_branches = any(rest.get(key) for key in BRANCHES)
    return (
        rest
        if has_branches and "type" in description and type_of(rest) == description["type"]
        else description
    )


def _has_other_type(before: Description, after: Description) -> bool:
    if any((key in before) != (key in after) for key in BRANCHES):
        return True
    types = {before.get("type", ""), after.get("type", "")}
    return len(types) == 2 and "" not in types and types != {"integer", "number"}


def _type_change(
    place: str, before: Description, after: Description, direction: Direction
) -> Change:
    """Return the change of a type.

    It is wider only if the old type, unchanged, is among the branches of the new one.
    """
    old, new = _alternatives(before), _alternatives(after)
    if old == new:
        return Change("text", place, "is written in another way")
    kind = direction.wider if old < new else direction.narrower if new < old else "breaking"
    was, now = _type_names(before), _type_names(after)
    return Change(
        kind,
        place,
        f"type {was} became {now}" if was != now else "is described by other alternatives",
    )


def _alternatives(description: Description) -> set[bytes]:
    """Return the alternatives for a value, each as canonical JSON.

    The branches of `anyOf` are alternatives only if no other keyword restricts the value.
    """
    asked = {key: value for key, value in description.items() if key not in _TYPE_INDEPENDENT}
    return {
        to_canonical(_without_annotations(one))
        for one in (asked["anyOf"] if asked.keys() == {"anyOf"} else [asked])
    }


def _without_annotations(description: Description) -> dict[str, Any]:
    """Return a description without annotations, on all levels."""
    return {
        key: _value_without_annotations(key, value)
        for key, value in _without_served_type(description).items()
        if key not in _ANNOTATIONS
    }


def _value_without_annotations(key: str, value: Any) -> Any:
    if key == "properties":
        return {name: _without_annotations(one) for name, one in value.items()}
    if key in BRANCHES:
        return [_without_annotations(one) for one in value]
    return (
        _without_annotations(value)
        if key in ("items", "additionalProperties") and isinstance(value, Mapping)
        else value
    )


def _type_names(description: Description) -> str:
    if "type" in description:
        return str(description["type"])
    return " or ".join(
        dict.fromkeys(type_of(branch) for key in BRANCHES for branch in description.get(key, ()))
    )


def _compare_keyword(
    place: str, key: str, before: Description, after: Description, direction: Direction
) -> list[Change]:
    old, new = (said.get(key, _IMPLIED_VALUES.get(key, ABSENT)) for said in (before, after))
    is_equal = are_identical if key in NESTING else are_equal
    if not is_equal(old, new):
        return ensure_change(
            place,
            _KEYWORD_RULES.get(key, _compare_unknown)(_Difference(place, key, old, new, direction)),
        )
    if (key in before) == (key in after):
        return []
    if key in after:
        return [Change("text", place, f"says {key} {format_value(new)} now, as it meant before")]
    return [Change("text", place, f"no longer says {key} {format_value(old)}, and still means it")]


def _compare_unknown(difference: _Difference) -> Iterator[Change]:
    yield Change("breaking", difference.place, f"{quote_value(difference.key)} {_UNKNOWN_CHANGE}")


# Keywords


def _compare_required(difference: _Difference) -> Iterator[Change]:
    yield (
        difference.narrowing("is required now")
        if difference.after
        else difference.widening("is optional now")
    )


def _compare_nullable(difference: _Difference) -> Iterator[Change]:
    yield (
        difference.widening("may now be null")
        if difference.after
        else difference.narrowing("may no longer be null")
    )


def _compare_unique_items(difference: _Difference) -> Iterator[Change]:
    yield (
        difference.narrowing("no item may repeat now")
        if difference.after
        else difference.widening("items may repeat now")
    )


def _compare_type(difference: _Difference) -> Iterator[Change]:
    """Yield a change between integer and number, or of a type next to branches."""
    is_wider = difference.after is ABSENT or difference.before == "integer"
    yield (
        difference.widening(difference.describe())
        if is_wider
        else difference.narrowing(difference.describe())
    )


def _compare_lower_bound(difference: _Difference) -> Iterator[Change]:
    is_narrower = difference.before is ABSENT or (
        difference.after is not ABSENT and difference.after > difference.before
    )
    yield (
        difference.narrowing(difference.describe())
        if is_narrower
        else difference.widening(difference.describe())
    )


def _compare_upper_bound(difference: _Difference) -> Iterator[Change]:
    is_narrower = difference.before is ABSENT or (
        difference.after is not ABSENT and difference.after < difference.before
    )
    yield (
        difference.narrowing(difference.describe())
        if is_narrower
        else difference.widening(difference.describe())
    )


def _compare_pattern_or_format(difference: _Difference) -> Iterator[Change]:
    """Yield the change of a pattern or format; whether a new one allows more is unknown."""
    kind = (
        difference.direction.narrower
        if difference.before is ABSENT
        else difference.direction.wider
        if difference.after is ABSENT
        else "breaking"
    )
    yield Change(kind, difference.place, difference.describe())


def _compare_enum(difference: _Difference) -> Iterator[Change]:
    if difference.before is ABSENT:
        yield difference.narrowing(
            f"{difference.direction.more_phrase} only {quote_values(difference.after)} now"
        )
    elif difference.after is ABSENT:
        yield difference.widening(
            f"{difference.direction.more_phrase} other values than {quote_values(difference.before)} now"
        )
    else:
        yield from _compare_enum_values(difference)


def _compare_enum_values(difference: _Difference) -> Iterator[Change]:
    old, new = (
        {to_canonical(value): value for value in difference.before},
        {to_canonical(value): value for value in difference.after},
    )
    if gone := [value for text, value in old.items() if text not in new]:
        yield difference.narrowing(f"{difference.direction.less_phrase} {quote_values(gone)}")
    if come := [value for text, value in new.items() if text not in old]:
        unknown = ", which callers may not know" if difference.direction is OUTPUT else ""
        yield difference.widening(
            f"{difference.direction.more_phrase} {quote_values(come)} now{unknown}"
        )
    if old.keys() == new.keys():
        yield difference.text_change("lists its values in another way")


def _compare_default(difference: _Difference) -> Iterator[Change]:
    """Yield the change of a default, which is part of the contract.

    Callers who omit the value get another one if the default changes, and an undefined one if it is
    removed. A new default breaks nobody, because nothing was promised before.
    """
    if difference.before is ABSENT:
        yield Change("additive", difference.place, difference.describe())
    else:
        yield Change(
            "breaking",
            difference.place,
            f"{difference.describe()}: it counts wherever the value is left out",
        )


def _compare_items(difference: _Difference) -> Iterator[Change]:
    if difference.before is ABSENT:
        yield difference.narrowing("items may no longer be anything")
    elif difference.after is ABSENT:
        yield difference.widening("items may be anything now")
    else:
        yield from _compare_descriptions(
            f"{difference.place}[]", difference.before, difference.after, difference.direction
        )


def _compare_properties(difference: _Difference) -> Iterator[Change]:
    yield from compare_parameters(
        f"{difference.place}.", difference.before, difference.after, difference.direction
    )


def _compare_additional_properties(difference: _Difference) -> Iterator[Change]:
    """Yield the change of whether properties beyond the named ones are allowed.

    As with names, allowing them is additive and forbidding them breaking on both sides.
    """
    if isinstance(difference.before, Mapping) and isinstance(difference.after, Mapping):
        yield from _compare_descriptions(
            f"{difference.place}.*", difference.before, difference.after, difference.direction
        )
    elif difference.after is False:
        yield Change("breaking", difference.place, "may no longer have other properties")
    elif difference.before is False:
        yield Change("additive", difference.place, "may have other properties now")
    elif difference.before is True:
        yield difference.narrowing("other properties may no longer be anything")
    else:
        yield difference.widening("other properties may be anything now")


def _compare_branches(difference: _Difference) -> Iterator[Change]:
    """Yield changes of branches; branches with the same meaning are paired, others by order."""
    pairs = _pair_branches(difference.before, difference.after)
    for old, new in pairs:
        if not are_identical(difference.before[old], difference.after[new]):
            yield from _compare_descriptions(
                f"{difference.place}.{difference.key}[{new}]",
                difference.before[old],
                difference.after[new],
                difference.direction,
            )
    for at in sorted({*range(len(difference.before))} - {old for old, _ in pairs}):
        yield Change(
            difference.direction.narrower,
            f"{difference.place}.{difference.key}[{at}]",
            f"was removed: {_type_names(difference.before[at])}",
        )
    for at in sorted({*range(len(difference.after))} - {new for _, new in pairs}):
        yield Change(
            difference.direction.wider,
            f"{difference.place}.{difference.key}[{at}]",
            f"is new: {_type_names(difference.after[at])}",
        )
    order = [new for _, new in sorted(pairs)]
    if order != sorted(order):
        yield difference.text_change(f"{difference.key} is in another order")


def _pair_branches(
    before: Sequence[Description], after: Sequence[Description]
) -> list[tuple[int, int]]:
    """Return pairs of old and new branch indexes.

    Identical branches are paired first, then those that differ only in annotations, then the rest
    in order.
    """
    olds, news = [*range(len(before))], [*range(len(after))]
    pairs: list[tuple[int, int]] = []
    for form in (dict, _without_annotations):
        places: dict[bytes, list[int]] = {}
        for new in news:
            places.setdefault(to_canonical(form(after[new])), []).append(new)
        found = {
            old: alike.pop(0)
            for old in olds
            if (alike := places.get(to_canonical(form(before[old])), []))
        }
        olds = [old for old in olds if old not in found]
        news = [new for new in news if new not in found.values()]
        pairs += found.items()
    return [*pairs, *zip(olds, news, strict=False)]


def _compare_annotation(difference: _Difference) -> Iterator[Change]:
    if difference.key == "title":
        yield difference.text_change(difference.describe())
    elif difference.key == "examples":
        yield difference.text_change("has other examples")
    else:
        yield difference.text_change(
            f"description {describe_text_change(difference.before, difference.after)}"
        )


_KEYWORD_RULES: dict[str, Callable[[_Difference], Iterable[Change]]] = {
    "required": _compare_required,
    "nullable": _compare_nullable,
    "uniqueItems": _compare_unique_items,
    "type": _compare_type,
    "pattern": _compare_pattern_or_format,
    "format": _compare_pattern_or_format,
    "enum": _compare_enum,
    "default": _compare_default,
    "items": _compare_items,
    "properties": _compare_properties,
    "additionalProperties": _compare_additional_properties,
    **dict.fromkeys(LOWER_BOUNDS, _compare_lower_bound),
    **dict.fromkeys(UPPER_BOUNDS, _compare_upper_bound),
    **dict.fromkeys(BRANCHES, _compare_branches),
    **dict.fromkeys(_ANNOTATIONS, _compare_annotation),
}
