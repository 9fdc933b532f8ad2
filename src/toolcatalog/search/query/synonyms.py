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
from toolcatalog.search.analysis import Word

_MAX_GAP = 3  # words between the two of a pair

ACTIONS = """
create add insert: new make open start raise register file book compose enter log write generate
    build draft prepare submit launch initiate begin establish produce form save schedule arrange
    plan organize report introduce set_up put_in put_on sign_up kick_off fill_in write_down
    write_up spin_up come_up jot_down
delete remove trash: erase drop destroy discard clear wipe purge eliminate cut kick kill scrap bin
    get_rid throw_away throw_out throw_in take_down take_out take_off take_away clean_up kick_out
cancel: stop end terminate quit abort delete finish call_off unsubscribe back_out opt_out
send post publish: write drop tell notify message announce ping deliver inform remind share contact
    text dm say forward broadcast let_know reach_out get_word
reply respond answer: write_back get_back react
get fetch retrieve read: show view open see display look check details inspect load pull info grab
    access examine tell_about look_at catch_up bring_up pull_up
list browse: show all see view which what display every available enumerate overview any each
    do_have have_got are_there
search find query: look_up look_for look_something where who locate seek discover filter browse
    hunt where_put
update edit change modify patch: set fix correct adjust rename alter assign mark move rewrite
    replace switch star mute revise amend improve reschedule postpone toggle reword rephrase tweak
    redo move_to put_off put_into put_another bring_forward push_back
rename: change_name
move transfer: put_into put_another shift relocate hand_over hand_off
upload attach: add put save import share
download: fetch save pull grab
export convert: transform turn_into
share permission: give_access let_see let_access grant allow collaborate let_edit let_read
invite: add ask bring
add: put put_into put_in let_in
copy duplicate clone: replicate
merge join combine: unite bring_together land
transition move: finish complete close resolve done
close: finish complete resolve done
restore: recover undo undelete bring_back get_back take_back put_back
archive: put_away
draft: prepare
schedule: later remind reminder
cancel: stop
refund: give_back money_back pay_back return reimburse
pay payment charge: buy purchase collect
reaction react: like thumb emoji
comment note: remark discuss
note: write_down jot_down
review: approve reject feedback
subscribe: sign_up follow
star: bookmark favorite
run execute trigger: launch start
enable activate: turn_on switch_on
disable deactivate suspend: turn_off switch_off block
summary summarize: introduction overview short brief
suggest complete: autocomplete recommend propose
calculate compute: determine estimate work_out figure_out
nearby near: around close
"""

THINGS = """
forecast weather: rain snow sunny temperature wind warm cold hot storm climate degree outside
    umbrella cloudy humid freeze
history historical past: last previous yesterday ago earlier archive
history: log
version revision: older earlier previous history
title name subject: heading caption
status state stage: progress step phase
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
email mail message: inbox
message: announcement dm pm sms note text
issue ticket bug task: defect todo problem
event meeting appointment: agenda schedule session call meet standup
attendee: guest participant
file document: doc pdf picture photo spreadsheet screenshot attachment contract
document: doc
document page:
page: note wiki
folder directory:
customer client: buyer shopper
contact person: lead
contact: client people
deal opportunity:
company business organization firm: employer
invoice bill:
repository repo: codebase
pull request: pr
commit: code
code: source
content: source
release: version
user member account: profile person people employee coworker colleague teammate staff guy
member: who
owner: own
photo picture image: screenshot
price cost: expensive
message post:
story: post
conversation discussion thread chat:
conversation channel: room
channel conversation: room
subscription plan: membership
payment money: paid
place location city: address latitude longitude town
coordinate geocode: latitude longitude address position
article: encyclopedia wiki entry
comment: answer reply feedback
reply: answer
air: smog pollution
busy free: available
list: mailing
story news: headline
news: headline
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
course classroom: class
coursework assignment: homework
student: pupil
language translate: translation translator speak
language: german french spanish english chinese italian japanese
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
collaborator: developer
limit: quota
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
_SINGLES = {
    term: (
        tuple(_ACTIONS.get(term, ())),
        tuple(other for other in _THINGS.get(term, ()) if other != term),
    )
    for term in (*_ACTIONS, *_THINGS)
}


def find_synonyms(words: Sequence[Word]) -> list[Synonym]:
    """Return the synonyms of a sentence.

    `words` are all its words in order, with stop words. The words of a pair have no synonyms of
    their own.
    """
    synonyms = [*_synonyms_of_pairs(words)]
    paired = {position for synonym in synonyms for position in synonym.positions}
    for position, word in enumerate(words):
        if word.term in _SINGLES and position not in paired:
            actions, things = _SINGLES[word.term]
            synonyms += [Synonym((position,), other, True) for other in actions]
            synonyms += [Synonym((position,), other, False) for other in things]
    return synonyms


def _synonyms_of_pairs(words: Sequence[Word]) -> Iterator[Synonym]:
    for position, word in enumerate(words):
        if seconds := _PAIRS.get(word.term):
            for other in range(position + 1, min(position + 2 + _MAX_GAP, len(words))):
                for target in seconds.get(words[other].spelling, ()):
                    yield Synonym((position, other), target, True)


def has_synonyms(word: str) -> bool:
    """Return whether a word is in the tables, so that it is no misspelling."""
    term = analysis.stem(word)
    return term in _SINGLES or term in _PAIRS
