"""Synonyms: the words for actions and things that tools use, and those that users use instead.

Users say "remove", and the tool is called "Delete a file". Each line of a table has words that
tools use, a colon, and words that users say. A word of a query stands for all other words on the
left of its lines. `set_up` is a pair: `up` follows `set` with at most three words between, as in
"set a meeting up". The tables have general English only, and nothing of a single catalog.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from toolcatalog.search import analysis

_MAX_GAP = 3  # words between the two of a pair

ACTIONS = """
create add insert: new make open start raise register file book compose enter log write generate
    build draft prepare submit launch initiate begin establish produce form save schedule arrange
    plan organize set_up put_in put_on sign_up kick_off fill_in write_down spin_up
delete remove trash: erase drop destroy discard clear wipe purge eliminate cut get_rid throw_away
    throw_out take_down take_out take_off clean_up
cancel: stop end terminate quit abort delete call_off unsubscribe
send post publish: write drop tell notify message announce ping deliver inform remind share contact
    let_know reach_out
reply respond answer: write_back get_back react
get fetch retrieve read: show view open see display look check details inspect load pull info
    tell_about
list browse: show all see view which what display every available enumerate overview
search find query: look_up look_for look_something where who locate seek discover filter browse
update edit change modify patch: set fix correct adjust rename alter assign mark move rewrite
    replace switch star mute revise amend improve reschedule postpone toggle move_to put_off
    put_into put_another
move transfer: put_into put_another shift relocate
upload attach: add put save import
download: fetch save pull
export convert: transform turn_into
share permission: give_access let_see let_access grant allow collaborate
invite: add ask bring
copy duplicate clone: replicate
merge join combine: unite bring_together
transition move: finish complete close resolve done
close: finish complete resolve done
draft: prepare
schedule: later remind reminder
cancel: stop
refund: give_back money_back pay_back return reimburse
pay payment charge: buy purchase
reaction react: like thumb emoji
comment note: remark discuss
review: approve reject feedback
summary summarize: introduction overview short brief
suggest complete: autocomplete recommend propose
calculate compute: determine estimate work_out figure_out
nearby near: around here close
"""

THINGS = """
forecast weather: rain snow sunny temperature wind warm cold hot storm climate degree outside
history historical past: last previous yesterday ago earlier
title name subject: heading caption
status state stage: progress
label tag category: topic
team group: crew squad
permission access: right
balance: funds
row record entry: line
column property field: attribute
block paragraph section: text
attachment file:
sea marine ocean: wave beach surf coast
elevation altitude height: high tall
email mail message:
issue ticket bug task:
event meeting appointment: agenda
file document:
document page:
folder directory:
customer client:
contact person: lead
deal opportunity:
company business organization firm:
invoice bill:
repository repo:
commit: code
user member account: profile person people
photo picture image:
price cost:
message post:
conversation discussion thread chat:
channel conversation:
subscription plan:
payment money:
place location city:
article: encyclopedia
comment: answer reply
air: smog pollution
busy free: available
story news: post headline
movie film: cinema
show series: episode television
music song track: artist album playlist
car vehicle: automobile drive
flight airline: fly plane airport
hotel accommodation lodging: stay room
trip travel: vacation holiday itinerary tourist
restaurant dining: dinner lunch eat cuisine
recipe cooking: cook dish meal ingredient
food nutrition: diet calorie meal
job career: employment hiring vacancy salary
stock share: investment equity portfolio market
currency exchange: dollar euro
cryptocurrency crypto: bitcoin coin token
home house property: apartment estate rent
law legal: lawyer court contract
health medical: doctor disease symptom medicine
course lesson tutorial: learn study class education
language translate: translation translator speak
route directions: navigate drive way
map location: near nearby
video: clip youtube
code programming: program developer software
website site webpage: web
url link: address
product item: goods
shop store: shopping
order purchase: buy
sale discount coupon: deal cheap
question quiz: answer
game: play
sport: football soccer basketball team match
exercise workout: fitness training
gift present:
pet animal: dog cat
book: novel author reading
paper research: academic scholar publication
poem lyrics: write
chart graph diagram: plot visualize
table spreadsheet sheet: row column
database: table
time clock: hour
date calendar: day
phone telephone: mobile call
text sms: message
password credential: login secret
log event: trace
container: docker
server machine instance: host
storage: bucket disk
average mean:
sum total add:
maximum largest: highest biggest
minimum smallest: lowest
area size: square
distance: far kilometer mile
number integer: digit
"""


class Synonym(NamedTuple):
    """A term, the positions of the word or pair that it stands for, and whether it is an action.

    A word for an action is among its own synonyms if tools use it.
    """

    positions: tuple[int, ...]
    term: str
    is_action: bool

    @property
    def is_pair(self) -> bool:
        """Whether it stands for two words."""
        return len(self.positions) > 1


_Targets = Mapping[str, Sequence[str]]


def parse_table(table: str) -> Iterator[tuple[list[str], list[str]]]:
    """Yield the words of each line that tools use, and those that users say."""
    for line in table.replace("\n    ", " ").strip().splitlines():
        left, _, right = line.partition(":")
        yield left.split(), right.split()


def _index_words(table: str) -> tuple[_Targets, Mapping[str, _Targets]]:
    """Return the synonyms of single words, and those of pairs by first term and second word."""
    singles: defaultdict[str, dict[str, None]] = defaultdict(dict)
    pairs: defaultdict[str, defaultdict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for left, right in parse_table(table):
        targets = [analysis.stem(word) for word in left]
        for word in left + right:
            first, _, second = word.partition("_")
            if second:
                pairs[analysis.stem(first)][second] += targets
            else:
                singles[analysis.stem(word)].update(dict.fromkeys(targets))
    return {term: [*targets] for term, targets in singles.items()}, pairs


_ACTIONS, _PAIRS = _index_words(ACTIONS)
_THINGS, _ = _index_words(THINGS)


def find_synonyms(words: Sequence[str]) -> list[Synonym]:
    """Return the synonyms of a sentence.

    `words` are its spellings in order, in lower case, with stop words. The words of a pair have no
    synonyms of their own.
    """
    terms = [analysis.stem(word) for word in words]
    synonyms = [*_synonyms_of_pairs(words, terms)]
    paired = {position for synonym in synonyms for position in synonym.positions}
    for position, term in enumerate(terms):
        if position not in paired:
            synonyms += (Synonym((position,), other, True) for other in _ACTIONS.get(term, ()))
            synonyms += (
                Synonym((position,), other, False)
                for other in _THINGS.get(term, ())
                if other != term
            )
    return synonyms


def _synonyms_of_pairs(words: Sequence[str], terms: Sequence[str]) -> Iterator[Synonym]:
    for position, term in enumerate(terms):
        if seconds := _PAIRS.get(term):
            for other in range(position + 1, min(position + 2 + _MAX_GAP, len(words))):
                for target in seconds.get(words[other], ()):
                    yield Synonym((position, other), target, True)


def has_synonyms(word: str) -> bool:
    """Return whether a word is in the tables, so that it is no misspelling."""
    term = analysis.stem(word)
    return term in _ACTIONS or term in _THINGS or term in _PAIRS
