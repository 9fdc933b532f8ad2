/* The one script of the site. Every page can be read without it: what needs it is written hidden, and shown from here.
   Plain scripts, no modules and no fetch, because both are refused on file://. What comes from the catalog is only ever set as text. */
(() => {
  "use strict";

  const SHOWN = 30; // results in the dialog
  const LISTED = 1000; // tools in the list that the facets make, as many as on a written page
  const MOST_WORDS = 10; // of a query
  const POINTS = 8192; // more than any tool gets
  const DEPRECATED = 1;
  const IMPORTANT = 2;
  const NO_AUTH = 4;
  const IN_NAME = 1;
  const IN_SLUG = 2;
  const IN_TOOLKIT = 4;
  const FIELD_WEIGHT = [0, 3, 2, 3, 1, 3, 2, 3]; // by the set of fields that hold the word: that of the best one
  const EXACT = 4;
  const PREFIX = 3;
  const TYPO = 2;
  const TYPO_IN_PREFIX = 1;
  const SILENT = new Set(["a", "an", "and", "by", "for", "from", "in", "of", "on", "or", "the", "to", "with"]);

  /* ---- Search: text and numbers only, no page. Its parts are global so that they can be tested and timed without a browser. ---- */

  const isAscii = (text) => /^[\x00-\x7f]*$/.test(text);

  /** Lower case without accents. Nearly all text is ASCII, and then most of the work is saved. */
  function plain(text) {
    return isAscii(text) ? text.toLowerCase() : text.normalize("NFKD").replace(/\p{M}+/gu, "").toLowerCase();
  }

  function words(text) {
    return plain(text).match(isAscii(text) ? /[a-z0-9]+/g : /[\p{L}\p{N}]+/gu) || [];
  }

  /** Words by which a text is found: camelCase also by its parts; Chinese and the like, written without blanks, from each character on. */
  function indexWords(text) {
    const all = /[a-z][A-Z]/.test(text) ? words(`${text} ${text.replace(/([a-z])(?=[A-Z])/g, "$1 ")}`) : words(text);
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
      flags: Uint8Array.from(data.flags, (digit) => parseInt(digit, 16)),
      shard: data.shard,
    };
  }

  /** Adds a tool to the lists of these words. Tools come in order, so only the last entry of a list can be the same tool. */
  function post(lists, found, tool, field) {
    for (const word of found) {
      const list = lists.get(word);
      if (!list) lists.set(word, [tool * 8 + field]);
      else if (list[list.length - 1] >= tool * 8) list[list.length - 1] |= field;
      else list.push(tool * 8 + field);
    }
  }

  /** Tools to the index: sorted vocabulary, and for each word numbers that are 8 × tool + set of fields. */
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
    return { ...tools, vocabulary, lists, nameLengths, slugKeys, ...slugOrder(tools.slugs) };
  }

  /** Which tool has which place by slug, both ways: a place is part of the sort key, so ties always fall alike. */
  function slugOrder(slugs) {
    const atPlace = slugs.map((_, tool) => tool).sort((one, other) => (slugs[one] < slugs[other] ? -1 : 1));
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

  /** Tells whether one letter put in, left out, changed, or swapped with its neighbour makes `typed` into `word`, or into its beginning. */
  function oneTypo(typed, word, beginning) {
    let at = 0;
    while (at < typed.length && typed[at] === word[at]) at += 1;
    const same = (fromTyped, fromWord) => {
      const rest = typed.slice(fromTyped);
      return word.startsWith(rest, fromWord) && (beginning || fromWord + rest.length === word.length);
    };
    const swapped = at + 1 < typed.length && typed[at] === word[at + 1] && typed[at + 1] === word[at];
    return same(at + 1, at + 1) || same(at, at + 1) || same(at + 1, at) || (swapped && same(at + 2, at + 2));
  }

  function typos(vocabulary, typed, beginning) {
    const least = typed.length - 1;
    const most = beginning ? Infinity : typed.length + 1;
    return vocabulary.filter((word) => word.length >= least && word.length <= most && oneTypo(typed, word, beginning));
  }

  /** Words of the vocabulary that a typed word stands for, with how well: typos only where nothing else is found. */
  function standsFor(vocabulary, typed) {
    const found = [];
    for (let place = lowerBound(vocabulary, typed); place < vocabulary.length && vocabulary[place].startsWith(typed); place += 1) {
      found.push([vocabulary[place], vocabulary[place] === typed ? EXACT : PREFIX]);
    }
    if (found.length || typed.length < 4) return found;
    const whole = typos(vocabulary, typed, false);
    return whole.length ? whole.map((word) => [word, TYPO]) : typos(vocabulary, typed, true).map((word) => [word, TYPO_IN_PREFIX]);
  }

  /** Words to look for: silent ones are left out, but not where there is no other, nor while the last is still being typed. */
  function queryWords(query) {
    const all = words(query);
    const open = /[\p{L}\p{N}]$/u.test(query) ? all.length - 1 : -1;
    const telling = all.filter((word, place) => place === open || !SILENT.has(word));
    return [...new Set(telling.length ? telling : all)].slice(0, MOST_WORDS);
  }

  /** For each tool the weight of the best word that a typed one stands for in it, 0 where there is none. */
  function weightsOf(index, typed) {
    const best = new Uint8Array(index.slugs.length);
    for (const [word, quality] of standsFor(index.vocabulary, typed)) {
      for (const entry of index.lists.get(word)) {
        const weight = 3 * quality + FIELD_WEIGHT[entry & 7];
        if (weight > best[entry >> 3]) best[entry >> 3] = weight;
      }
    }
    return best;
  }

  /** For each tool: the sum of weights over the typed words, and how many of these it has. A rare word adds more, the same for
      every tool that has it: that puts tools with some of the words in order, and changes nothing among those with all. */
  function weigh(index, typed) {
    const size = index.slugs.length;
    const sums = new Uint16Array(size);
    const hits = new Uint8Array(size);
    for (const word of typed) {
      const weights = weightsOf(index, word);
      const having = weights.reduce((count, weight) => count + (weight ? 1 : 0), 0);
      const rarity = having ? Math.round(Math.log2(size / having)) : 0;
      for (let tool = 0; tool < size; tool += 1) {
        if (!weights[tool]) continue;
        sums[tool] += weights[tool] + rarity;
        hits[tool] += 1;
      }
    }
    return { sums, hits };
  }

  /** How the slug fits: 3 the very slug, 2 in another spelling, 1 its beginning, 0 not. One unfinished word is not enough:
      "email" is meant for words, and should not put all of EMAILOCTOPUS_ first. */
  function slugFit(slug, slugKey, query, key, several) {
    if (!slugKey.startsWith(key)) return 0;
    if (slugKey.length === key.length) return slug === query ? 3 : 2;
    return several || slugKey[key.length] === "_" ? 1 : 0;
  }

  /** Tools for a query, best first, at most `most`; `all` of them all have every word, `some` further ones not every. */
  function find(index, query, most) {
    const typed = queryWords(query);
    const inQuery = words(query);
    const slug = query.trim().toUpperCase();
    const slugKey = inQuery.join("_");
    const { sums, hits } = weigh(index, typed);
    const size = index.slugs.length;
    const keys = new Float64Array(size);
    let found = 0;
    let all = 0;
    for (let tool = 0; tool < size; tool += 1) {
      if (!hits[tool]) continue;
      const complete = hits[tool] === typed.length ? 1 : 0;
      const fit = slugFit(index.slugs[tool], index.slugKeys[tool], slug, slugKey, inQuery.length > 1);
      const live = index.flags[tool] & DEPRECATED ? 0 : 1;
      const covered = Math.min(1, hits[tool] / (index.nameLengths[tool] || 1));
      const points = 20 * sums[tool] + Math.round(20 * covered) + (index.flags[tool] & IMPORTANT ? 6 : 0);
      all += complete;
      keys[found] = (((complete + fit) * 2 + live) * POINTS + points) * size + (size - 1 - index.placeOf[tool]);
      found += 1;
    }
    // The keys are numbers that hold their tool, so they are sorted without a comparison function: ten times as fast.
    const best = keys.subarray(0, found).sort().slice(Math.max(0, found - most)).reverse();
    return { tools: Array.from(best, (key) => index.atPlace[size - 1 - (key % size)]), all, some: found - all };
  }

  globalThis.toolcatalogSearch = Object.freeze({ readTools, makeIndex, find, oneTypo });
  if (typeof document === "undefined") return;

  /* ---- What all features share ---- */

  const root = document.documentElement;
  const home = root.dataset.root || "";
  const mac = /mac|iphone|ipad/i.test((navigator.userAgentData && navigator.userAgentData.platform) || navigator.platform || "");
  const memory = new Map(); // what localStorage refused, in private windows or on full disks: kept as long as the page is open

  function recall(name) {
    try {
      return memory.has(name) ? memory.get(name) : localStorage.getItem(`toolcatalog.${name}`);
    } catch {
      return null;
    }
  }

  function remember(name, value) {
    try {
      localStorage.setItem(`toolcatalog.${name}`, value);
    } catch {
      memory.set(name, value);
    }
  }

  /** An element with these attributes; strings among the children become text. */
  function make(tag, attributes = {}, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...children);
    return element;
  }

  const each = (selector, action) => document.querySelectorAll(selector).forEach(action);
  const numbers = new Intl.NumberFormat("en");
  const number = (count) => numbers.format(count);
  const counted = (count) => `${number(count)} ${count === 1 ? "tool" : "tools"}`;
  const allTools = (query) => `${home}tools/index.html${query ? `?q=${encodeURIComponent(query)}` : ""}`;
  const toolPage = (slug) => `${home}tools/${encodeURIComponent(slug)}/index.html`;

  let live = null;

  /** Tells people who do not see the page. Emptied first, because the same words again would not be read out. */
  function say(text) {
    live = live || document.body.appendChild(make("p", { class: "live", role: "status" }));
    live.textContent = "";
    setTimeout(() => (live.textContent = text), 50);
  }

  /** As the written pages have them. */
  function badges(flags) {
    const kinds = [[DEPRECATED, "badge warn", "deprecated"], [IMPORTANT, "badge key", "important"], [NO_AUTH, "badge", "no auth"]];
    return kinds.filter(([flag]) => flags & flag).flatMap(([, kind, text]) => [" ", make("span", { class: kind }, text)]);
  }

  /* ---- Data: scripts that call one of three global functions ---- */

  const arrived = new Map();
  const loading = new Map();
  globalThis.toolcatalogData = (data) => arrived.set("search-data.js", data);
  globalThis.toolcatalogFacets = (data) => arrived.set("facets.js", data);
  globalThis.toolcatalogShard = (shard, texts) => arrived.set(`search/${shard}.js`, texts);

  /** What a data script hands over. Asked for once; after a failure it may be asked for again. */
  function load(path) {
    if (!loading.has(path)) loading.set(path, loadScript(path));
    return loading.get(path);
  }

  function loadScript(path) {
    return new Promise((resolve, reject) => {
      const script = make("script", { src: home + path });
      const end = () => {
        script.remove();
        if (arrived.has(path)) return resolve(arrived.get(path));
        loading.delete(path);
        return reject(new Error(`${path} could not be loaded`));
      };
      script.onload = end;
      script.onerror = end;
      document.head.append(script);
    });
  }

  let tools = null;
  let index = null;

  async function loadTools() {
    const data = await load("search-data.js");
    tools = tools || readTools(data);
    return tools;
  }

  async function loadIndex() {
    const read = await loadTools();
    index = index || makeIndex(read);
    return index;
  }

  /* ---- Theme: set before anything is painted, hence the script in the head that is not deferred ---- */

  const THEMES = ["system", "light", "dark"];

  function theme() {
    return THEMES.find((one) => one === recall("theme")) || "system";
  }

  function showTheme() {
    if (theme() === "system") delete root.dataset.theme;
    else root.dataset.theme = theme();
    each("button.theme", (button) => {
      button.dataset.choice = theme();
      button.title = `Theme: ${theme()}`;
      button.setAttribute("aria-label", button.title);
    });
  }

  function nextTheme() {
    remember("theme", THEMES[(THEMES.indexOf(theme()) + 1) % THEMES.length]);
    showTheme();
    say(`Theme: ${theme()}`);
  }

  function startTheme() {
    showTheme();
    each("button.theme", (button) => {
      button.addEventListener("click", nextTheme);
      button.hidden = false;
    });
    addEventListener("storage", showTheme); // chosen in another tab
  }

  /* ---- Logos: errors do not bubble but can be caught on their way down; from the head none is missed ---- */

  function watchLogos() {
    const dropped = (event) => event.target instanceof HTMLImageElement && event.target.closest(".logo") && event.target.remove();
    document.addEventListener("error", dropped, true);
  }

  /* ---- Copy ---- */

  /** The old way, for pages where the clipboard is not to be had. A field of its own, because what is hidden cannot be selected. */
  function copyBySelection(text) {
    const before = document.activeElement;
    const field = make("textarea", { readonly: "", "aria-hidden": "true" });
    field.value = text;
    field.style.position = "fixed"; // or the page would scroll to it
    field.style.opacity = "0";
    document.body.append(field);
    field.select();
    const done = document.execCommand("copy");
    field.remove();
    if (before instanceof HTMLElement) before.focus({ preventScroll: true });
    return done;
  }

  async function copy(text) {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      return copyBySelection(text);
    }
  }

  /** Shows a word on a button for two seconds; a second press while it is shown starts the two seconds again. */
  function flash(button, word, shown) {
    const last = shown.get(button);
    if (last) clearTimeout(last.timer);
    const content = last ? last.content : [...button.childNodes];
    const back = () => {
      button.replaceChildren(...content);
      button.classList.remove("copied");
      shown.delete(button);
    };
    button.replaceChildren(word);
    button.classList.add("copied");
    shown.set(button, { content, timer: setTimeout(back, 2000) });
  }

  function startCopy() {
    const shown = new Map();
    each("button.copy", (button) => {
      const source = document.getElementById(button.dataset.copy);
      if (!source) return;
      button.hidden = false;
      button.addEventListener("click", async () => {
        const word = (await copy(source.textContent)) ? "Copied" : "Not copied";
        flash(button, word, shown);
        say(word);
      });
    });
  }

  /* ---- Tabs ---- */

  /** One tab and its panel out of a section with a heading; null where there is no heading to name it by. */
  function makeTab(section, fallbackId) {
    const heading = section.querySelector("h2, h3, h4");
    if (!heading) return null;
    section.id = section.id || fallbackId;
    const attributes = { type: "button", class: "tab", role: "tab", id: `${section.id}-tab`, "aria-controls": section.id };
    const button = make("button", attributes, heading.textContent.trim());
    heading.hidden = true;
    section.setAttribute("role", "tabpanel");
    section.setAttribute("aria-labelledby", button.id);
    if (!section.querySelector("a[href], button, [tabindex]")) section.tabIndex = 0; // else Tab already leads into it
    return { button, section, name: button.textContent };
  }

  function selectTab(tabs, chosen) {
    for (const tab of tabs) {
      const selected = tab === chosen;
      tab.button.setAttribute("aria-selected", String(selected));
      tab.button.tabIndex = selected ? 0 : -1;
      tab.section.hidden = !selected;
    }
  }

  function tabForKey(tabs, current, key) {
    const steps = new Map([["ArrowRight", current + 1], ["ArrowLeft", current - 1], ["Home", 0], ["End", -1]]);
    return steps.has(key) ? tabs[(steps.get(key) + tabs.length) % tabs.length] : null;
  }

  /** Chooses a heading in every set of tabs that shares its memory. */
  function chooseTab(sets, key, name) {
    remember(key, name);
    for (const set of sets.filter((one) => one.key === key)) {
      const same = set.tabs.find((tab) => tab.name === name);
      if (same) selectTab(set.tabs, same);
    }
  }

  function makeTabs(box, place, sets) {
    const key = box.dataset.remember || `tabs-${place}`;
    const sections = [...box.children].filter((child) => child.localName === "section");
    const tabs = sections.map((section, at) => makeTab(section, `tabs-${place}-${at}`)).filter(Boolean);
    if (tabs.length < 1) return;
    const choose = (tab) => {
      selectTab(tabs, tab);
      chooseTab(sets, key, tab.name);
    };
    const list = make("div", { class: "tab-list", role: "tablist", "aria-label": box.getAttribute("aria-label") || key });
    list.append(...tabs.map((tab) => tab.button));
    list.addEventListener("click", (event) => {
      const tab = tabs.find((one) => one.button.contains(event.target));
      if (tab) choose(tab);
    });
    list.addEventListener("keydown", (event) => {
      const tab = tabForKey(tabs, tabs.findIndex((one) => one.button === event.target), event.key);
      if (!tab || event.altKey || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      choose(tab);
      tab.button.focus();
    });
    box.prepend(list);
    selectTab(tabs, tabs.find((tab) => tab.name === recall(key)) || tabs[0]);
    sets.push({ key, tabs });
  }

  /** A link to a section opens its tab. */
  function openLinkedTab(sets) {
    const target = document.getElementById(hash());
    for (const { tabs } of sets) {
      const tab = target && tabs.find((one) => one.section.contains(target));
      if (!tab || !tab.section.hidden) continue;
      selectTab(tabs, tab);
      target.scrollIntoView();
    }
  }

  function hash() {
    try {
      return decodeURIComponent(location.hash.slice(1));
    } catch {
      return ""; // a stray % in the address
    }
  }

  function startTabs() {
    const sets = [];
    each(".tabs", (box, place) => makeTabs(box, place, sets));
    if (!sets.length) return;
    openLinkedTab(sets);
    addEventListener("hashchange", () => openLinkedTab(sets));
  }

  /* ---- Filter of a table ---- */

  function filterRows(rows, typed, output) {
    const wanted = plain(typed).split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of rows) {
      row.element.hidden = !wanted.every((word) => row.text.includes(word));
      shown += row.element.hidden ? 0 : 1;
    }
    if (output) output.textContent = wanted.length ? `${number(shown)} of ${number(rows.length)}` : "";
  }

  function startFilter(input) {
    const table = document.getElementById(input.dataset.filter);
    if (!table || !table.tBodies) return;
    const output = (input.closest("label") || input).parentElement.querySelector(".filter-count");
    let rows = null; // read at first need: a table can be long
    const filter = () => {
      if (!rows && !input.value) return;
      rows = rows || [...table.tBodies].flatMap((body) => [...body.rows]).map((element) => ({ element, text: plain(element.textContent) }));
      filterRows(rows, input.value, output);
    };
    input.hidden = false;
    input.addEventListener("input", filter);
    addEventListener("pageshow", filter); // browsers put back what was typed when one comes back
  }

  /* ---- Compare two versions ---- */

  function replaceAddress(address, push) {
    try {
      history[push ? "pushState" : "replaceState"](null, "", address);
    } catch {
      // some browsers refuse this for files: the page works, only the address stays
    }
  }

  function startCompare() {
    const form = document.querySelector("form.compare");
    const pairs = [...document.querySelectorAll("section.pair")];
    const from = form && form.querySelector("select[name=from]");
    const to = form && form.querySelector("select[name=to]");
    if (!from || !to || !pairs.length) return;
    const none = make("p", { class: "pair-none", role: "status" });
    pairs[0].before(none);
    const named = (id) => pairs.find((pair) => pair.id === id);
    const chosen = () => named(`${from.value}...${to.value}`) || named(`${to.value}...${from.value}`);
    const show = () => {
      const pair = chosen();
      for (const one of pairs) one.hidden = one !== pair;
      none.textContent = pair ? "" : "Choose two different versions.";
      return pair;
    };
    const restore = () => {
      const pair = named(hash()) || chosen() || pairs[0];
      const [older, newer] = pair.id.split("...");
      if (chosen() !== pair) [from.value, to.value] = [older, newer];
      show();
    };
    form.addEventListener("submit", (event) => event.preventDefault());
    form.addEventListener("change", () => {
      const pair = show();
      if (pair) replaceAddress(`#${encodeURIComponent(pair.id)}`, false);
    });
    addEventListener("hashchange", restore);
    form.hidden = false;
    restore();
  }

  /* ---- All tools: facets. Their state is the query of the address: a link to it, and the way back, show the same list. ---- */

  const CHOICES = ["q", "toolkit", "tag", "scope", "auth"];

  function readAddress() {
    const query = new URLSearchParams(location.search);
    const state = new Map(CHOICES.map((name) => [name, query.get(name) || ""]));
    return state.set("deprecated", query.get("deprecated") === "no" ? "no" : "");
  }

  function addressOf(state) {
    const query = new URLSearchParams([...state].filter(([, value]) => value));
    return `${location.pathname}${query.toString() ? `?${query}` : ""}`;
  }

  const field = (form, name) => form.querySelector(`[name=${name}]`);

  function readForm(form) {
    const value = (name) => (field(form, name) ? field(form, name).value : "");
    const state = new Map(CHOICES.map((name) => [name, name === "q" ? value(name).trim() : value(name)]));
    const box = field(form, "deprecated");
    return state.set("deprecated", box && !box.checked ? "no" : "");
  }

  function writeForm(form, state) {
    for (const name of CHOICES) {
      if (field(form, name)) field(form, name).value = state.get(name);
    }
    const box = field(form, "deprecated");
    if (box) box.checked = state.get("deprecated") !== "no";
  }

  function fillSelects(form, facets) {
    const fill = (name, options) => field(form, name) && field(form, name).append(...options);
    fill("toolkit", tools.toolkits.map(([slug, name, count]) => new Option(`${name} (${number(count)})`, slug)));
    fill("tag", facets.tags.map((tag) => new Option(tag, tag)));
    fill("scope", facets.scopes.map((scope) => new Option(scope, scope)));
  }

  /** A test of a tool's number for the facets in `state`. A name that is not in the catalog lets nothing pass. */
  function facetTest(state, facets) {
    const tests = [];
    const among = (name, known, ofTool) => {
      const place = known.indexOf(state.get(name));
      if (state.get(name)) tests.push((tool) => ofTool(tool).includes(place));
    };
    among("toolkit", tools.toolkits.map(([slug]) => slug), (tool) => [tools.toolkitOf[tool]]);
    among("tag", facets.tags, (tool) => facets.tool_tags[tool]);
    among("scope", facets.scopes, (tool) => facets.tool_scopes[tool]);
    if (state.get("auth")) tests.push((tool) => !(tools.flags[tool] & NO_AUTH) === (state.get("auth") === "yes"));
    if (state.get("deprecated")) tests.push((tool) => !(tools.flags[tool] & DEPRECATED));
    return (tool) => tests.every((test) => test(tool));
  }

  /** Numbers of the tools for `state`: by rank where something is typed, else as in the written list. Those with some of the words
      only come where none has them all. */
  function pick(state, facets) {
    const passes = facetTest(state, facets);
    if (!state.get("q")) return { picked: [...tools.slugs.keys()].filter(passes), partly: false };
    index = index || makeIndex(tools);
    const { tools: found, all } = find(index, state.get("q"), Infinity);
    const whole = found.slice(0, all).filter(passes);
    return whole.length ? { picked: whole, partly: false } : { picked: found.filter(passes), partly: found.length > 0 };
  }

  function toolItem(tool) {
    const link = make("a", { href: toolPage(tools.slugs[tool]) }, tools.names[tool]);
    return make("li", {}, link, " ", make("code", { class: "slug" }, tools.slugs[tool]), ...badges(tools.flags[tool]));
  }

  function foundText(count, partly) {
    if (!count) return "No tool found";
    const which = partly ? "No tool has all the words; found with some of them: " : "";
    return `${which}${counted(count)}${count > LISTED ? `, the first ${number(LISTED)} are shown` : ""}`;
  }

  /** What the facets change on the page, and how it was before. */
  function facetPage(form) {
    const found = document.querySelector(".found");
    const written = [...document.querySelectorAll("#list, nav.pages")];
    const list = make("ol", { class: "tools", hidden: "" });
    const clear = make("button", { type: "reset", class: "facets-clear", hidden: "" }, "Clear");
    if (document.getElementById("list")) document.getElementById("list").after(list);
    form.append(clear);
    return { found, before: found ? found.textContent : "", written, list, clear };
  }

  function showFacets(page, state, facets) {
    const any = [...state.values()].some(Boolean);
    const { picked, partly } = any ? pick(state, facets) : { picked: [], partly: false };
    for (const element of page.written) element.hidden = any;
    page.list.hidden = !any;
    page.clear.hidden = !any;
    page.list.replaceChildren(...picked.slice(0, LISTED).map(toolItem));
    if (page.found) page.found.textContent = any ? foundText(picked.length, partly) : page.before;
  }

  /** Puts the state into the address. A run of typing is one step back, not one for each letter. */
  function addressKeeper() {
    let typing = false;
    return (state, typed) => {
      const address = addressOf(state);
      if (address !== location.pathname + location.search) replaceAddress(address, !(typed && typing));
      typing = typed;
    };
  }

  function startFacets() {
    const form = document.querySelector("form.facets");
    if (!form) return;
    const page = facetPage(form);
    const keep = addressKeeper();
    let state = readAddress();
    let facets = null;
    const show = () => facets && showFacets(page, state, facets);
    const changed = (typed) => {
      state = readForm(form);
      keep(state, typed);
      show();
    };
    const restore = () => {
      state = readAddress();
      writeForm(form, state);
      show();
    };
    form.addEventListener("submit", (event) => event.preventDefault());
    form.addEventListener("input", (event) => changed(event.target.name === "q"));
    form.addEventListener("reset", () => setTimeout(() => changed(false))); // the event comes before the fields are empty
    addEventListener("popstate", restore);
    writeForm(form, state);
    form.hidden = false;
    Promise.all([load("facets.js"), loadTools()]).then(
      ([loaded]) => {
        facets = loaded;
        fillSelects(form, facets);
        writeForm(form, state);
        show();
      },
      () => (form.hidden = true) // the written list is still there
    );
  }

  /* ---- Search dialog: a combobox whose list is always open. The focus stays in the field; the active option is told by reference. ---- */

  function makeField() {
    const attributes = { type: "text", class: "search-input", role: "combobox", "aria-label": "Search tools", placeholder: "Search tools" };
    const list = { "aria-controls": "search-list", "aria-expanded": "false", "aria-autocomplete": "list", "aria-haspopup": "listbox" };
    const plainly = { autocomplete: "off", autocapitalize: "off", autocorrect: "off", spellcheck: "false", enterkeyhint: "go" };
    return make("input", { ...attributes, ...list, ...plainly });
  }

  function makeHelp() {
    const slash = make("input", { type: "checkbox" });
    slash.checked = recall("slash") !== "off";
    slash.addEventListener("change", () => remember("slash", slash.checked ? "on" : "off"));
    const keys = make("span", { class: "search-keys" });
    for (const [key, text] of [["↑ ↓", "choose"], ["↵", "open"], ["Esc", "close"]]) keys.append(make("kbd", {}, key), ` ${text} `);
    return make("div", { class: "search-help" }, keys, make("label", {}, slash, " Open with ", make("kbd", {}, "/")));
  }

  function makeDialog() {
    const input = makeField();
    const close = make("button", { type: "button", class: "search-close", "aria-label": "Close search" }, "×");
    const count = make("p", { class: "search-count", role: "status" });
    const list = make("div", { class: "search-list", id: "search-list", role: "listbox", "aria-label": "Tools" });
    const link = make("a", { href: allTools("") });
    const all = make("p", { class: "search-all" }, link);
    const box = make("div", { class: "search-box" }, make("div", { class: "search-bar" }, input, close), count, list, all, makeHelp());
    const dialog = make("dialog", { id: "search", "aria-label": "Search" }, box);
    document.body.append(dialog);
    return { dialog, box, input, close, count, list, link, all, options: [], active: null, opener: null, timer: 0 };
  }

  /** The text in pieces, words that begin as typed marked. */
  function marked(text, typed) {
    const pieces = text.split(/([\p{L}\p{N}]+)/u);
    const begins = (piece) => typed.some((word) => plain(piece).startsWith(word));
    return pieces.map((piece, place) => (place % 2 && begins(piece) ? make("mark", {}, piece) : piece)); // words are at odd places
  }

  /** Each option is a link, so that it can be opened in a new tab or copied like any other. */
  function makeOption(tool, typed) {
    const name = make("span", { class: "search-name" }, ...marked(index.names[tool], typed));
    const text = make("span", { class: "search-text" });
    const slug = make("code", { class: "slug" }, index.slugs[tool]);
    const attributes = { class: "search-option", role: "option", "aria-selected": "false", tabindex: "-1" };
    const parts = [name, " ", slug, ...badges(index.flags[tool]), " ", text];
    const element = make("a", { ...attributes, href: toolPage(index.slugs[tool]) }, ...parts);
    return { tool, text, element };
  }

  /** The options as a group for each toolkit, in order of the best one of each. */
  function makeGroups(options) {
    const groups = new Map();
    for (const option of options) {
      const toolkit = index.toolkitOf[option.tool];
      if (!groups.has(toolkit)) groups.set(toolkit, []);
      groups.get(toolkit).push(option);
    }
    return [...groups].map(([toolkit, members]) => {
      const name = index.toolkits[toolkit][1];
      const title = make("span", { class: "search-toolkit", "aria-hidden": "true" }, name);
      const attributes = { class: "search-group", role: "group", "aria-label": name };
      return { members, element: make("div", attributes, title, ...members.map((option) => option.element)) };
    });
  }

  function activate(ui, option, scroll) {
    if (ui.active) ui.active.element.setAttribute("aria-selected", "false");
    ui.active = option || null;
    if (!option) return ui.input.removeAttribute("aria-activedescendant");
    option.element.setAttribute("aria-selected", "true");
    ui.input.setAttribute("aria-activedescendant", option.element.id);
    if (scroll) (option === ui.options[0] ? option.element.closest(".search-group") : option.element).scrollIntoView({ block: "nearest" });
  }

  function describeOption({ tool, text }) {
    const shard = Math.floor(tool / index.shard);
    const fill = (texts) => (text.textContent = texts[tool - shard * index.shard] || "");
    load(`search/${shard}.js`).then(fill, () => {}); // a result without its description is still a result
  }

  /** Descriptions: those that are here at once, others for what is in view once typing pauses, as each is in a file with 499 more. */
  function describe(ui) {
    clearTimeout(ui.timer);
    ui.watcher = ui.watcher || new IntersectionObserver((entries) => {
      for (const entry of entries.filter((one) => one.isIntersecting)) {
        ui.watcher.unobserve(entry.target);
        const option = ui.options.find((one) => one.element === entry.target);
        if (option) describeOption(option);
      }
    });
    ui.watcher.disconnect();
    const here = (option) => arrived.has(`search/${Math.floor(option.tool / index.shard)}.js`);
    ui.options.filter(here).forEach(describeOption);
    ui.timer = setTimeout(() => ui.options.filter((option) => !here(option)).forEach((option) => ui.watcher.observe(option.element)), 120);
  }

  function countText(query, { all, some }, shown) {
    if (!queryWords(query).length) return `${counted(index.slugs.length)} to search`;
    if (!shown) return "No tool found";
    if (!all) return `${some > shown ? `Best ${shown} of ` : ""}${counted(some)} with some of the words`;
    if (all > shown) return `Best ${shown} of ${counted(all)}`;
    return all < shown ? `${counted(all)}, ${shown - all} more with some of the words` : counted(all);
  }

  /** Offers the list of all tools: as found where not all is shown here, whole where nothing is. */
  function offerAll(ui, query, found, shown) {
    const more = (found.all || found.some) > shown;
    ui.all.hidden = shown > 0 && !more;
    ui.link.href = allTools(more ? query.trim() : "");
    ui.link.textContent = more ? `Show all ${number(found.all || found.some)} in the list` : "Open the list of all tools";
  }

  function showResults(ui) {
    const query = ui.input.value;
    const found = find(index, query, SHOWN);
    const typed = queryWords(query);
    const groups = makeGroups(found.tools.map((tool) => makeOption(tool, typed)));
    ui.options = groups.flatMap((group) => group.members);
    ui.options.forEach((option, place) => (option.element.id = `search-option-${place}`));
    ui.list.replaceChildren(...groups.map((group) => group.element));
    ui.list.hidden = !ui.options.length;
    ui.list.scrollTop = 0;
    ui.box.dataset.state = ui.options.length ? "found" : typed.length ? "none" : "empty";
    ui.input.setAttribute("aria-expanded", String(ui.options.length > 0));
    ui.count.textContent = countText(query, found, ui.options.length);
    offerAll(ui, query, found, ui.options.length);
    activate(ui, ui.options[0], false);
    describe(ui);
  }

  function showWaiting(ui, state, text) {
    ui.box.dataset.state = state;
    ui.count.textContent = text;
    ui.list.hidden = true;
    ui.all.hidden = false;
    ui.link.href = allTools(ui.input.value.trim());
    ui.link.textContent = "Open the list of all tools";
  }

  function searchAgain(ui) {
    if (index) return showResults(ui);
    showWaiting(ui, "loading", "Loading…");
    return loadIndex().then(
      () => showResults(ui),
      () => showWaiting(ui, "failed", "The list of tools could not be loaded")
    );
  }

  function optionForKey(ui, key) {
    const current = ui.options.indexOf(ui.active);
    const places = new Map([["ArrowDown", current + 1], ["ArrowUp", current - 1], ["Home", 0], ["End", -1]]);
    const size = ui.options.length;
    return places.has(key) && size ? ui.options[(places.get(key) + size) % size] : null;
  }

  function searchKey(ui, event) {
    if (event.isComposing || event.shiftKey || event.altKey) return;
    const option = optionForKey(ui, event.key);
    const held = { ctrlKey: event.ctrlKey, metaKey: event.metaKey }; // with these a browser opens a link in a new tab
    if (event.key === "Enter") {
      event.preventDefault();
      const link = ui.active ? ui.active.element : ui.link;
      if (!ui.all.hidden || ui.active) link.dispatchEvent(new MouseEvent("click", { bubbles: true, cancelable: true, ...held }));
    } else if (option && !event.ctrlKey && !event.metaKey) {
      event.preventDefault();
      activate(ui, option, true);
    }
  }

  function listenInDialog(ui) {
    const optionAt = (event) => ui.options.find((option) => option.element.contains(event.target));
    ui.input.addEventListener("input", () => searchAgain(ui));
    ui.input.addEventListener("keydown", (event) => searchKey(ui, event));
    ui.list.addEventListener("mousedown", (event) => event.preventDefault()); // the focus stays in the field
    ui.list.addEventListener("pointermove", (event) => {
      const option = optionAt(event);
      if (option && option !== ui.active) activate(ui, option, false);
    });
    ui.close.addEventListener("click", () => ui.dialog.close());
    ui.dialog.addEventListener("click", (event) => {
      const leaves = event.target instanceof Element && event.target.closest("a") && !event.ctrlKey && !event.metaKey && !event.shiftKey;
      if (leaves || event.target === ui.dialog) ui.dialog.close(); // the dialog itself is hit only beside its box
    });
    ui.dialog.addEventListener("close", () => {
      if (!(ui.opener instanceof HTMLElement)) return;
      if (ui.opener.closest(".search-first")) ui.opener.value = ui.input.value;
      ui.opener.focus();
    });
  }

  /** Opens the dialog, with `text` if any; else what was looked for last, selected so that typing replaces it. */
  function openSearch(ui, opener, text) {
    if (ui.dialog.open) return;
    ui.opener = opener;
    if (text) ui.input.value = text;
    ui.dialog.showModal();
    ui.input.focus();
    if (text) ui.input.setSelectionRange(text.length, text.length);
    else ui.input.select();
    searchAgain(ui);
  }

  function isTyping(target) {
    return target instanceof HTMLElement && (target.isContentEditable || target.closest("input, textarea, select") !== null);
  }

  function globalKey(dialog, event) {
    if (event.isComposing || event.altKey) return;
    const command = (mac ? event.metaKey : event.ctrlKey) && !event.shiftKey && event.key.toLowerCase() === "k";
    const slash = event.key === "/" && !event.ctrlKey && !event.metaKey && !isTyping(event.target) && recall("slash") !== "off";
    if (!command && (!slash || document.querySelector("dialog[open]"))) return;
    event.preventDefault();
    const ui = dialog();
    if (ui.dialog.open) ui.dialog.close();
    else openSearch(ui, document.activeElement, "");
  }

  function startSearchButton(dialog, button) {
    const hint = button.querySelector("kbd") || button.appendChild(make("kbd"));
    hint.textContent = mac ? "⌘ K" : "Ctrl K";
    hint.setAttribute("aria-hidden", "true"); // the name of the button stays what it does
    button.setAttribute("aria-keyshortcuts", mac ? "Meta+K" : "Control+K");
    button.setAttribute("aria-haspopup", "dialog");
    button.addEventListener("click", () => openSearch(dialog(), button, ""));
    button.hidden = false;
  }

  /** The field on the home page opens the dialog with its first letter. Not amid a composition, which the change of field would break. */
  function startSearchField(dialog, input) {
    const open = (event) => {
      if (!event.isComposing && input.value) openSearch(dialog(), input, input.value);
    };
    input.addEventListener("focus", () => loadIndex().catch(() => {}), { once: true });
    input.addEventListener("input", open);
    input.addEventListener("compositionend", open);
  }

  function startSearch() {
    if (typeof HTMLDialogElement === "undefined" || !HTMLDialogElement.prototype.showModal) return;
    let ui = null;
    const dialog = () => {
      if (!ui) listenInDialog((ui = makeDialog()));
      return ui;
    };
    each("button.search-open", (button) => startSearchButton(dialog, button));
    each("form.search-first input[name=q]", (input) => startSearchField(dialog, input));
    document.addEventListener("keydown", (event) => globalKey(dialog, event));
  }

  function start() {
    say(""); // a region that is there from the start is more surely read out
    startTheme();
    startSearch();
    startCopy();
    startTabs();
    each("input.filter", startFilter);
    startCompare();
    startFacets();
  }

  showTheme();
  watchLogos();
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
})();
