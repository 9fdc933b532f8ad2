/* The search index: text and numbers only, no page.
   The same words as in the API's index are not needed: the server has the better search. */

const MAX_QUERY_WORDS = 10;
const POINTS = 8192; // more than any tool gets
const IN_NAME = 1;
const IN_SLUG = 2;
const IN_TOOLKIT = 4;
const IN_TEXT = 8; // description, tags and scopes
const FIELDS = 16; // number of sets of fields
const FIELD_WEIGHT = [0, 3, 2, 3, 1, 3, 2, 3]; // by set of fields: that of the best field
const TEXT_PENALTY = 8; // for words that are in the text only
const EXACT = 4;
const PREFIX = 3;
const SYNONYM = [3, 2]; // for actions and for things
const TYPO = 2;
const TYPO_IN_PREFIX = 1;
const MAX_GAP = 3; // words between the two of a pair
const TEXTS_AT_ONCE = 2000; // about 20 ms of work
const STOP_WORDS = new Set(
  (
    "a an and any at be by can do for from get give how i in into is it me my need of on or our please " +
    "some that the their this to want we what with you your"
  ).split(" ")
);

const isAscii = (text) => /^[\x00-\x7f]*$/.test(text);

/** Lower case without accents. Nearly all text is ASCII, and then most of the work is saved. */
function plain(text) {
  return isAscii(text)
    ? text.toLowerCase()
    : text
        .normalize("NFKD")
        .replace(/\p{M}+/gu, "")
        .toLowerCase();
}

function words(text) {
  return plain(text).match(isAscii(text) ? /[a-z0-9]+/g : /[\p{L}\p{N}]+/gu) || [];
}

/** Words by which a text is found: camelCase also by its parts; Chinese and the like, written
    without blanks, from each character on. */
function indexWords(text) {
  const all = /[a-z][A-Z]/.test(text)
    ? words(`${text} ${text.replace(/([a-z])(?=[A-Z])/g, "$1 ")}`)
    : words(text);
  if (isAscii(text)) return all;
  const endings = (word) => [...word].map((_, place, signs) => signs.slice(place).join(""));
  return all.flatMap((word) => (/[\u2e80-\ud7ff]/.test(word) ? endings(word) : word));
}

/** Data as written by the site's builder to arrays, one entry a tool. */
function readTools(data) {
  const lines = (text) => (text ? text.split("\n") : []);
  const toolkitOf = data.toolkits.flatMap(([, , tools], toolkit) => new Array(tools).fill(toolkit));
  return {
    toolkits: data.toolkits,
    toolkitOf,
    slugs: lines(data.slugs),
    names: lines(data.names),
    flags: Uint8Array.from(data.flags, (digit) => parseInt(digit, 32)),
    shard: data.shard,
    recent: data.recent,
    synonyms: readSynonyms(data.synonyms),
  };
}

/** Adds a tool to the lists of these words. The fields of a tool share an entry if they are added
    one after the other. */
function post(lists, found, tool, field) {
  const base = tool * FIELDS;
  for (const word of found) {
    const list = lists.get(word);
    const last = list ? list[list.length - 1] : -1;
    if (!list) lists.set(word, [base + field]);
    else if (last >= base && last < base + FIELDS) list[list.length - 1] |= field;
    else list.push(base + field);
  }
}

/** Tools to the index of their names: a sorted vocabulary, and for each word numbers that are
    FIELDS × tool + set of fields. */
function makeIndex(tools) {
  const lists = new Map();
  const toolkitWords = tools.toolkits.map(([slug, name]) => indexWords(`${slug} ${name}`));
  const nameLengths = new Uint8Array(tools.slugs.length);
  const slugKeys = tools.slugs.map((slug, tool) => {
    const inSlug = words(slug);
    const inName = indexWords(tools.names[tool]);
    nameLengths[tool] = Math.min(255, inName.length);
    post(lists, inName, tool, IN_NAME);
    post(lists, inSlug, tool, IN_SLUG);
    post(lists, toolkitWords[tools.toolkitOf[tool]], tool, IN_TOOLKIT);
    return inSlug.join("_");
  });
  const vocabulary = [...lists.keys()].sort();
  const order = slugOrder(tools.slugs);
  return { ...tools, vocabulary, lists, nameLengths, slugKeys, ...order, hasTexts: false };
}

/** Adds the words of descriptions, tags and scopes, a text for each tool. Meanwhile, the index can
    be searched by what it has: `pause` is awaited between two parts of the work. */
async function addTexts(index, texts, pause) {
  for (let tool = 0; tool < texts.length; tool += 1) {
    if (tool && tool % TEXTS_AT_ONCE === 0) await pause();
    post(index.lists, words(texts[tool]), tool, IN_TEXT);
  }
  index.vocabulary = [...index.lists.keys()].sort();
  index.hasTexts = true;
}

/** Which tool has which place by slug, both ways: a place is part of the sort key, so ties always
    fall alike. */
function slugOrder(slugs) {
  const atPlace = slugs
    .map((_, tool) => tool)
    .sort((one, other) => (slugs[one] < slugs[other] ? -1 : 1));
  const placeOf = new Uint32Array(slugs.length);
  atPlace.forEach((tool, place) => (placeOf[tool] = place));
  return { atPlace, placeOf };
}

/** Place of the first word that is not before `word`. */
function lowerBound(vocabulary, word) {
  let low = 0;
  let high = vocabulary.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (vocabulary[middle] < word) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Returns whether, after the same first letter, one letter put in, left out, changed, or swapped
    makes `typed` into `word`, or into its beginning. */
function oneTypo(typed, word, beginning) {
  let at = 0;
  while (at < typed.length && typed[at] === word[at]) at += 1;
  const same = (fromTyped, fromWord) => {
    const rest = typed.slice(fromTyped);
    return word.startsWith(rest, fromWord) && (beginning || fromWord + rest.length === word.length);
  };
  const swapped = at + 1 < typed.length && typed[at] === word[at + 1] && typed[at + 1] === word[at];
  return (
    same(at + 1, at + 1) ||
    same(at, at + 1) ||
    same(at + 1, at) ||
    (swapped && same(at + 2, at + 2))
  );
}

/** The words that a typed one may be. People get the first letter right. */
function typos(vocabulary, typed, beginning) {
  const least = typed.length - 1;
  const most = beginning ? Infinity : typed.length + 1;
  const found = [];
  for (
    let place = lowerBound(vocabulary, typed[0]);
    place < vocabulary.length && vocabulary[place][0] === typed[0];
    place += 1
  ) {
    const word = vocabulary[place];
    if (word.length >= least && word.length <= most && oneTypo(typed, word, beginning))
      found.push(word);
  }
  return found;
}

const singular = (word) => (/[^s]s$/.test(word) && word.length > 3 ? word.slice(0, -1) : word);

/** The words that tools use, each with how well it stands for a word that people say, or for a pair
    of them with `_`. The tables are those of the API (see `search/query/synonyms.py`), for actions and
    for things: lines of "used by tools:said by people". */
function readSynonyms(tables) {
  const targets = new Map();
  tables.forEach((table, place) => {
    for (const line of table.split("\n")) {
      const [used, said] = line.split(":").map((part) => part.split(" "));
      for (const word of [...used, ...said]) {
        const others = used.filter((one) => one !== word).map((one) => [one, SYNONYM[place]]);
        targets.set(word, [...(targets.get(word) || []), ...others]);
      }
    }
  });
  return targets;
}

/** The words of a query in order, each with its synonyms. Of a pair such as "give … back", only the
    first word is left, with the synonyms of the pair. */
function withSynonyms(synonyms, all) {
  const used = new Set();
  return all.flatMap((word, place) => {
    if (used.has(place)) return [];
    for (let other = place + 1; other <= place + 1 + MAX_GAP && other < all.length; other += 1) {
      const targets = synonyms.get(`${word}_${all[other]}`);
      if (!targets) continue;
      used.add(other);
      return [{ word, place, targets, isPair: true }];
    }
    const targets = synonyms.get(word) || synonyms.get(singular(word)) || [];
    return [{ word, place, targets, isPair: false }];
  });
}

/** Words of the vocabulary that a word of a query stands for, with how well: typos only where
    nothing else is found, and the word is not one of the synonyms. */
function standsFor(vocabulary, { word: typed, targets }) {
  const found = [];
  for (
    let place = lowerBound(vocabulary, typed);
    place < vocabulary.length && vocabulary[place].startsWith(typed);
    place += 1
  ) {
    found.push([vocabulary[place], vocabulary[place] === typed ? EXACT : PREFIX]);
  }
  const has = (word) => vocabulary[lowerBound(vocabulary, word)] === word;
  const single = singular(typed);
  if (single !== typed && has(single)) found.push([single, EXACT]);
  for (const [target, quality] of targets)
    found.push(...[target, `${target}s`].filter(has).map((word) => [word, quality]));
  if (found.length || targets.length || typed.length < 4) return found;
  const whole = typos(vocabulary, typed, false);
  return whole.length
    ? whole.map((word) => [word, TYPO])
    : typos(vocabulary, typed, true).map((word) => [word, TYPO_IN_PREFIX]);
}

/** Words to look for: stop words are left out, but not where there is no other, nor while the last
    is still being typed. */
function queryWords(query, synonyms) {
  const all = words(query);
  const open = /[\p{L}\p{N}]$/u.test(query) ? all.length - 1 : -1;
  const terms = withSynonyms(synonyms, all);
  const searched = terms.filter(
    ({ word, place, isPair }) => isPair || place === open || !STOP_WORDS.has(word)
  );
  const byWord = new Map((searched.length ? searched : terms).map((term) => [term.word, term]));
  return [...byWord.values()].slice(0, MAX_QUERY_WORDS);
}

/** The tools with a word that a typed one stands for, and for each tool of the catalog the weight
    of the best such word, 0 where there is none. */
function weightsOf(index, typed) {
  const best = new Uint8Array(index.slugs.length);
  const having = [];
  for (const [word, quality] of standsFor(index.vocabulary, typed)) {
    for (const entry of index.lists.get(word)) {
      const tool = (entry / FIELDS) | 0;
      const fields = entry % FIELDS;
      const weight = 3 * quality + (fields === IN_TEXT ? -TEXT_PENALTY : FIELD_WEIGHT[fields & 7]);
      if (weight <= best[tool]) continue;
      if (!best[tool]) having.push(tool);
      best[tool] = weight;
    }
  }
  return { best, having };
}

/** The tools with any typed word, and for each tool of the catalog: the sum of weights over the
    typed words, and how many of these it has. A rare word adds more, the same for every tool that
    has it: that puts tools with some of the words in order, and changes nothing among those with
    all. */
function weigh(index, typed) {
  const size = index.slugs.length;
  const sums = new Uint16Array(size);
  const hits = new Uint8Array(size);
  const some = [];
  for (const word of typed) {
    const { best, having } = weightsOf(index, word);
    const rarity = having.length ? Math.round(Math.log2(size / having.length)) : 0;
    for (const tool of having) {
      if (!hits[tool]) some.push(tool);
      sums[tool] += best[tool] + rarity;
      hits[tool] += 1;
    }
  }
  return { sums, hits, some };
}

/** How the slug fits: 3 the very slug, 2 in another spelling, 1 its beginning, 0 not. One
    unfinished word is not enough: "email" is meant for words, and should not put all of
    EMAILOCTOPUS_ first. */
function slugFit(slug, slugKey, query, key, several) {
  if (!slugKey.startsWith(key)) return 0;
  if (slugKey.length === key.length) return slug === query ? 3 : 2;
  return several || slugKey[key.length] === "_" ? 1 : 0;
}

/** Tools for a query, best first, at most `most`; `all` of them all have every word, `some` further
    ones not every. */
function find(index, query, most) {
  const typed = queryWords(query, index.synonyms);
  const inQuery = words(query);
  const slug = query.trim().toUpperCase();
  const slugKey = inQuery.join("_");
  const { sums, hits, some } = weigh(index, typed);
  const size = index.slugs.length;
  const keys = new Float64Array(some.length);
  let all = 0;
  some.forEach((tool, place) => {
    const complete = hits[tool] === typed.length ? 1 : 0;
    const fit = slugFit(index.slugs[tool], index.slugKeys[tool], slug, slugKey, inQuery.length > 1);
    const live = index.flags[tool] & DEPRECATED ? 0 : 1;
    const covered = Math.min(1, hits[tool] / (index.nameLengths[tool] || 1));
    const points =
      20 * sums[tool] + Math.round(20 * covered) + (index.flags[tool] & IMPORTANT ? 6 : 0);
    all += complete;
    keys[place] =
      (((complete + fit) * 2 + live) * POINTS + points) * size + (size - 1 - index.placeOf[tool]);
  });
  // The keys are numbers that hold their tool, so they are sorted without a comparison function:
  // ten times as fast.
  const best = keys
    .sort()
    .slice(Math.max(0, keys.length - most))
    .reverse();
  return {
    tools: Array.from(best, (key) => index.atPlace[size - 1 - (key % size)]),
    all,
    some: some.length - all,
  };
}
