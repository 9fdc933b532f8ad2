"""The vocabulary of synthetic tools: a few hundred real words, and many made of syllables.

Words are drawn as in real text: a few of them often, and most of them rarely.
"""

import random
from collections.abc import Iterable
from itertools import accumulate

# Stop words have the highest ranks: in real descriptions, every third word is one of them.
STOP_WORDS = """
the a of to and in for with by from on is an or that as it at this which are be all not one its
""".split()
VERBS = """
get list create update delete search find send add remove set fetch upload download move copy share
start stop cancel close open archive restore export import invite assign approve reject publish
merge split rename count check verify enable disable sync refresh schedule reply forward tag watch
follow lock unlock reserve refund charge transfer convert translate summarize compare rank sort
validate submit confirm subscribe unsubscribe attach detach link connect reset rotate revoke grant
scan parse render preview
""".split()
NOUNS = """
account message file folder user team project task issue comment branch release commit review label
milestone channel thread reaction mention contact company deal lead ticket order invoice payment
customer product price coupon refund subscription plan event calendar meeting room guest reminder
note page block database table record row column view field form answer survey campaign audience
segment template email draft attachment signature image video audio photo album playlist track
artist document sheet slide cell range chart report dashboard metric alert incident monitor log
trace build deployment pipeline job runner artifact package image container cluster node volume
secret key token role permission policy group member workspace organization site domain record
certificate address route place map location city country forecast weather flight hotel booking trip
ticket seat menu recipe ingredient shop cart item stock warehouse shipment parcel label carrier tax
currency rate balance transfer wallet loan claim contract clause signature candidate interview offer
employee shift absence payroll expense course lesson quiz grade student class school book chapter
quote author article headline source feed post story bookmark tag query result snippet summary
translation transcript keyword entity sentiment language voice model prompt dataset experiment
sensor device firmware switch lamp thermostat scene zone battery vehicle charger route driver
delivery patient appointment
""".split()
ADJECTIVES = """
new open closed public private shared recent active archived pending daily weekly monthly internal
external custom default nested verified personal scheduled remote local primary secondary hidden
pinned starred overdue draft final partial complete bulk single
""".split()
TAGS = """
important readOnlyHint destructiveHint idempotentHint openWorldHint messages files users teams
projects issues search reports payments invoices customers calendar contacts documents images video
analytics monitoring deployments security access storage databases forms email notifications
comments reviews marketing sales support hiring learning travel weather maps devices health news
""".split()
SCOPES = [f"{area}:{right}" for area in TAGS[5:35] for right in ("read", "write")]

_SYLLABLES = [
    head + tail
    for head in "b d f g k l m n p r s t v z br st tr pl".split()
    for tail in "a e i o u an el or ix".split()
]
_GENERATED_COUNT = 60_000
_FLAT, _STEEP = 2.7, 1.15  # the Zipf-Mandelbrot law: frequency by rank


class Vocabulary:
    """Real words, followed by generated ones; the same for the same seed."""

    def __init__(self, seed: int) -> None:
        rng = random.Random(seed)
        real = dict.fromkeys([*STOP_WORDS, *VERBS, *NOUNS, *ADJECTIVES])
        self.generated = make_words(rng, _GENERATED_COUNT, real)
        self.all = [*real, *self.generated]
        self._weights = [*accumulate((rank + _FLAT) ** -_STEEP for rank in range(len(self.all)))]

    def draw(self, rng: random.Random, count: int) -> list[str]:
        """Draw words with a probability that depends on their rank."""
        return rng.choices(self.all, cum_weights=self._weights, k=count)


def make_words(rng: random.Random, count: int, taken: Iterable[str]) -> list[str]:
    """Return `count` different words of two to four syllables, none of which is in `taken`."""
    words = dict.fromkeys(taken)
    before = len(words)
    while len(words) < before + count:
        words.setdefault("".join(rng.choices(_SYLLABLES, k=rng.choice((2, 3, 3, 4)))))
    return [*words][before:]
