"""Parameter changes: whether a description of inputs or outputs became narrower or wider.

A change allows fewer values, more values, or other ones. Callers write inputs and read outputs, so
a change that is additive on one side is breaking on the other. An input that accepts less rejects
what was sent before; an output that may be more returns what no caller knows. Names are the
exception: removing one is breaking on both sides, and adding one is not, unless callers must supply
it.

Each keyword has a rule. A difference without a rule is breaking, so every change is reported.
"""

from collections import defaultdict
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
    shorten_location,
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
    "required": False,
    "nullable": False,
    "uniqueItems": False,
    "minLength": 0,
    "minItems": 0,
    "additionalProperties": True,
    "description": "",
    "properties": {},
}


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

    location: str
    key: str
    old: Any
    new: Any
    direction: Direction

    def narrowing(self, text: str) -> Change:
        return Change(self.direction.narrower, self.location, text)

    def widening(self, text: str) -> Change:
        return Change(self.direction.wider, self.location, text)

    def text_change(self, text: str) -> Change:
        return Change("text", self.location, text)

    def describe(self) -> str:
        return describe_keyword_change(self.key, self.old, self.new)


def ensure_change(location: str, changes: Iterable[Change]) -> list[Change]:
    """Return the changes that a rule found for two values that differ, or an unknown change."""
    return [*changes] or [Change("breaking", location, _UNKNOWN_CHANGE)]


def compare_parameters(
    prefix: str,
    old: Mapping[str, Description],
    new: Mapping[str, Description],
    direction: Direction,
) -> Iterator[Change]:
    """Yield the changes between two sets of parameters or properties.

    `prefix` is the beginning of their places. The order of those on both sides is compared too,
    because the author chose it and it is served.
    """
    for name in sorted(old.keys() | new.keys()):
        location = shorten_location(prefix + format_name(name))
        if name not in new:
            yield Change("breaking", location, "was removed")
        elif name not in old:
            yield _added_parameter(location, new[name], direction)
        elif not are_identical(old[name], new[name]):
            yield from _compare_descriptions(location, old[name], new[name], direction)
    if [name for name in old if name in new] != [name for name in new if name in old]:
        noun = "parameters" if prefix.endswith(" ") else "properties"
        yield Change("text", prefix.rstrip(" ."), f"lists its {noun} in another order")


def _added_parameter(location: str, description: Description, direction: Direction) -> Change:
    if direction is OUTPUT:
        return Change("additive", location, "is new")
    required = bool(description.get("required"))
    return Change(
        "breaking" if required else "additive",
        location,
        f"is new and {'required' if required else 'optional'}",
    )


def _compare_descriptions(
    location: str, old_description: Description, new_description: Description, direction: Direction
) -> list[Change]:
    """Return the changes in a description that differs."""
    old, new = _without_served_type(old_description), _without_served_type(new_description)
    keys, changes = old.keys() | new.keys(), []
    # keywords for one type cannot be compared with keywords for another
    if _has_other_type(old, new):
        keys &= _TYPE_INDEPENDENT
        changes.append(_type_change(location, old, new, direction))
    for key in sorted(keys):
        changes += _compare_keyword(location, key, old, new, direction)
    if not changes and are_equal(old_description, new_description):
        changes.append(Change("text", location, "is written in another way"))
    return ensure_change(location, changes)


def _without_served_type(description: Description) -> Description:
    """Return a description without the type that is only derived from its branches."""
    without_type = {key: value for key, value in description.items() if key != "type"}
    has_branches = any(without_type.get(key) for key in BRANCHES)
    return (
        without_type
        if has_branches and "type" in description and type_of(without_type) == description["type"]
        else description
    )


def _has_other_type(old: Description, new: Description) -> bool:
    if any((key in old) != (key in new) for key in BRANCHES):
        return True
    types = {old.get("type", ""), new.get("type", "")}
    return len(types) == 2 and "" not in types and types != {"integer", "number"}


def _type_change(
    location: str, old_description: Description, new_description: Description, direction: Direction
) -> Change:
    """Return the change of a type.

    It is wider only if the old type, unchanged, is among the branches of the new one.
    """
    old, new = _alternatives(old_description), _alternatives(new_description)
    if old == new:
        return Change("text", location, "is written in another way")
    kind = direction.wider if old < new else direction.narrower if new < old else "breaking"
    old_type, new_type = _type_names(old_description), _type_names(new_description)
    return Change(
        kind,
        location,
        f"type {old_type} became {new_type}"
        if old_type != new_type
        else "is described by other alternatives",
    )


def _alternatives(description: Description) -> set[bytes]:
    """Return the alternatives for a value, each as canonical JSON.

    The branches of `anyOf` are alternatives only if no other keyword restricts the value.
    """
    constraints = {key: value for key, value in description.items() if key not in _TYPE_INDEPENDENT}
    return {
        to_canonical(_without_annotations(alternative))
        for alternative in (
            constraints["anyOf"] if constraints.keys() == {"anyOf"} else [constraints]
        )
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
        return {name: _without_annotations(description) for name, description in value.items()}
    if key in BRANCHES:
        return [_without_annotations(description) for description in value]
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
    location: str,
    key: str,
    old_description: Description,
    new_description: Description,
    direction: Direction,
) -> list[Change]:
    old, new = (
        description.get(key, _IMPLIED_VALUES.get(key, ABSENT))
        for description in (old_description, new_description)
    )
    is_equal = are_identical if key in NESTING else are_equal
    if not is_equal(old, new):
        return ensure_change(
            location,
            _KEYWORD_RULES.get(key, _compare_unknown)(
                _Difference(location, key, old, new, direction)
            ),
        )
    if (key in old_description) == (key in new_description):
        return []
    if key in new_description:
        return [Change("text", location, f"says {key} {format_value(new)} now, as it meant before")]
    return [
        Change("text", location, f"no longer says {key} {format_value(old)}, and still means it")
    ]


def _compare_unknown(difference: _Difference) -> Iterator[Change]:
    yield Change(
        "breaking", difference.location, f"{quote_value(difference.key)} {_UNKNOWN_CHANGE}"
    )


# Keywords


def _compare_required(difference: _Difference) -> Iterator[Change]:
    yield (
        difference.narrowing("is required now")
        if difference.new
        else difference.widening("is optional now")
    )


def _compare_nullable(difference: _Difference) -> Iterator[Change]:
    yield (
        difference.widening("may now be null")
        if difference.new
        else difference.narrowing("may no longer be null")
    )


def _compare_unique_items(difference: _Difference) -> Iterator[Change]:
    yield (
        difference.narrowing("no item may repeat now")
        if difference.new
        else difference.widening("items may repeat now")
    )


def _compare_type(difference: _Difference) -> Iterator[Change]:
    """Yield a change between integer and number, or of a type next to branches."""
    is_wider = difference.new is ABSENT or difference.old == "integer"
    yield (
        difference.widening(difference.describe())
        if is_wider
        else difference.narrowing(difference.describe())
    )


def _compare_lower_bound(difference: _Difference) -> Iterator[Change]:
    is_narrower = difference.old is ABSENT or (
        difference.new is not ABSENT and difference.new > difference.old
    )
    yield (
        difference.narrowing(difference.describe())
        if is_narrower
        else difference.widening(difference.describe())
    )


def _compare_upper_bound(difference: _Difference) -> Iterator[Change]:
    is_narrower = difference.old is ABSENT or (
        difference.new is not ABSENT and difference.new < difference.old
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
        if difference.old is ABSENT
        else difference.direction.wider
        if difference.new is ABSENT
        else "breaking"
    )
    yield Change(kind, difference.location, difference.describe())


def _compare_enum(difference: _Difference) -> Iterator[Change]:
    if difference.old is ABSENT:
        yield difference.narrowing(
            f"{difference.direction.more_phrase} only {quote_values(difference.new)} now"
        )
    elif difference.new is ABSENT:
        yield difference.widening(
            f"{difference.direction.more_phrase} other values than"
            f" {quote_values(difference.old)} now"
        )
    else:
        yield from _compare_enum_values(difference)


def _compare_enum_values(difference: _Difference) -> Iterator[Change]:
    old, new = (
        {to_canonical(value): value for value in difference.old},
        {to_canonical(value): value for value in difference.new},
    )
    if removed := [value for text, value in old.items() if text not in new]:
        yield difference.narrowing(f"{difference.direction.less_phrase} {quote_values(removed)}")
    if added := [value for text, value in new.items() if text not in old]:
        unknown = ", which callers may not know" if difference.direction is OUTPUT else ""
        yield difference.widening(
            f"{difference.direction.more_phrase} {quote_values(added)} now{unknown}"
        )
    if old.keys() == new.keys():
        yield difference.text_change("lists its values in another way")


def _compare_default(difference: _Difference) -> Iterator[Change]:
    """Yield the change of a default, which is part of the contract.

    Callers who omit the value get another one if the default changes, and an undefined one if it is
    removed. A new default breaks nobody, because nothing was promised before.
    """
    if difference.old is ABSENT:
        yield Change("additive", difference.location, difference.describe())
    else:
        yield Change(
            "breaking",
            difference.location,
            f"{difference.describe()}: it counts wherever the value is left out",
        )


def _compare_items(difference: _Difference) -> Iterator[Change]:
    if difference.old is ABSENT:
        yield difference.narrowing("items may no longer be anything")
    elif difference.new is ABSENT:
        yield difference.widening("items may be anything now")
    else:
        yield from _compare_descriptions(
            shorten_location(f"{difference.location}[]"),
            difference.old,
            difference.new,
            difference.direction,
        )


def _compare_properties(difference: _Difference) -> Iterator[Change]:
    yield from compare_parameters(
        f"{difference.location}.", difference.old, difference.new, difference.direction
    )


def _compare_additional_properties(difference: _Difference) -> Iterator[Change]:
    """Yield the change of whether properties beyond the named ones are allowed.

    As with names, allowing them is additive and forbidding them breaking on both sides.
    """
    if isinstance(difference.old, Mapping) and isinstance(difference.new, Mapping):
        yield from _compare_descriptions(
            shorten_location(f"{difference.location}.*"),
            difference.old,
            difference.new,
            difference.direction,
        )
    elif difference.new is False:
        yield Change("breaking", difference.location, "may no longer have other properties")
    elif difference.old is False:
        yield Change("additive", difference.location, "may have other properties now")
    elif difference.old is True:
        yield difference.narrowing("other properties may no longer be anything")
    else:
        yield difference.widening("other properties may be anything now")


def _compare_branches(difference: _Difference) -> Iterator[Change]:
    """Yield changes of branches; branches with the same meaning are paired, others by order."""
    pairs = _pair_branches(difference.old, difference.new)
    for old, new in pairs:
        if not are_identical(difference.old[old], difference.new[new]):
            yield from _compare_descriptions(
                _branch_location(difference, new),
                difference.old[old],
                difference.new[new],
                difference.direction,
            )
    for index in sorted({*range(len(difference.old))} - {old for old, _ in pairs}):
        yield Change(
            difference.direction.narrower,
            _branch_location(difference, index),
            f"was removed: {_type_names(difference.old[index])}",
        )
    for index in sorted({*range(len(difference.new))} - {new for _, new in pairs}):
        yield Change(
            difference.direction.wider,
            _branch_location(difference, index),
            f"is new: {_type_names(difference.new[index])}",
        )
    order = [new for _, new in sorted(pairs)]
    if order != sorted(order):
        yield difference.text_change(f"{difference.key} is in another order")


def _branch_location(difference: _Difference, index: int) -> str:
    return shorten_location(f"{difference.location}.{difference.key}[{index}]")


def _pair_branches(old: Sequence[Description], new: Sequence[Description]) -> list[tuple[int, int]]:
    """Return pairs of old and new branch indexes.

    Identical branches are paired first, then those that differ only in annotations, then the rest
    in order.
    """
    pairs: list[tuple[int, int]] = []
    unpaired_old, unpaired_new = [*range(len(old))], [*range(len(new))]
    for normalize in (dict, _without_annotations):
        new_by_value: defaultdict[bytes, list[int]] = defaultdict(list)
        for index in unpaired_new:
            new_by_value[to_canonical(normalize(new[index]))].append(index)
        for index in unpaired_old:
            matches = new_by_value[to_canonical(normalize(old[index]))]
            if matches:
                pairs.append((index, matches.pop(0)))
        paired_old, paired_new = {pair[0] for pair in pairs}, {pair[1] for pair in pairs}
        unpaired_old = [index for index in unpaired_old if index not in paired_old]
        unpaired_new = [index for index in unpaired_new if index not in paired_new]
    return [*pairs, *zip(unpaired_old, unpaired_new, strict=False)]


def _compare_annotation(difference: _Difference) -> Iterator[Change]:
    if difference.key == "title":
        yield difference.text_change(difference.describe())
    elif difference.key == "examples":
        yield difference.text_change("has other examples")
    else:
        yield difference.text_change(
            f"description {describe_text_change(difference.old, difference.new)}"
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
