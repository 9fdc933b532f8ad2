/* The list of all tools: search, facets with counts, removable chips and sorting. The state is the
   query of the address, so that a link to it, and the way back, show the same list. */

const MAX_LISTED = 1000; // tools, as many as on a written page
const FACETS = {
  q: "Search",
  toolkit: "Toolkit",
  tag: "Tag",
  scope: "Scope",
  access: "Access",
  auth: "Authentication",
  sort: "Sort",
  deprecated: "Deprecated",
};
const COUNTED = ["toolkit", "tag", "scope"];

function readAddress() {
  const query = new URLSearchParams(location.search);
  return new Map(Object.keys(FACETS).map((name) => [name, query.get(name) || ""]));
}

function addressOf(state) {
  const query = new URLSearchParams([...state].filter(([, value]) => value));
  return `${location.pathname}${query.toString() ? `?${query}` : ""}`;
}

const field = (form, name) => form.querySelector(`[name=${name}]`);

function readForm(form) {
  const value = (name) =>
    name === "deprecated"
      ? field(form, name).checked
        ? ""
        : "no"
      : field(form, name).value.trim();
  return new Map(Object.keys(FACETS).map((name) => [name, value(name)]));
}

function writeForm(form, state) {
  for (const [name, value] of state) {
    if (name === "deprecated") field(form, name).checked = value !== "no";
    else field(form, name).value = value;
  }
}

/** For each facet with counts: its values, their names, and the values of a tool by number. */
function countedFacets(facets) {
  return {
    toolkit: {
      values: tools.toolkits.map(([slug]) => slug),
      names: tools.toolkits.map(([, name]) => name),
      of: (tool) => [tools.toolkitOf[tool]],
    },
    tag: { values: facets.tags, names: facets.tags, of: (tool) => facets.tool_tags[tool] },
    scope: { values: facets.scopes, names: facets.scopes, of: (tool) => facets.tool_scopes[tool] },
  };
}

function fillSelects(form, counted) {
  for (const name of COUNTED) {
    const { values, names } = counted[name];
    field(form, name).append(...values.map((value, place) => new Option(names[place], value)));
  }
}

const ACCESS = {
  read: (flags) => flags & READ_ONLY,
  write: (flags) => !(flags & READ_ONLY),
  destructive: (flags) => flags & DESTRUCTIVE,
};

/** Tests of a tool's number, by facet. A value that is not in the catalog lets no tool pass. */
function facetTests(state, counted) {
  const tests = new Map();
  for (const name of COUNTED) {
    const number = counted[name].values.indexOf(state.get(name));
    if (state.get(name)) tests.set(name, (tool) => counted[name].of(tool).includes(number));
  }
  const access = ACCESS[state.get("access")];
  if (state.get("access"))
    tests.set("access", (tool) => Boolean(access && access(tools.flags[tool])));
  if (state.get("auth"))
    tests.set("auth", (tool) => !(tools.flags[tool] & NO_AUTH) === (state.get("auth") === "yes"));
  if (state.get("deprecated")) tests.set("deprecated", (tool) => !(tools.flags[tool] & DEPRECATED));
  return tests;
}

/** Tools with the words of the search, best first; those with some of the words only if none has
    all. */
function searched(state, passes) {
  if (!state.get("q")) return { picked: [...tools.slugs.keys()].filter(passes), partly: false };
  const { tools: found, all } = find(index, state.get("q"), Infinity);
  const whole = found.slice(0, all).filter(passes);
  return whole.length
    ? { picked: whole, partly: false }
    : { picked: found.filter(passes), partly: found.length > 0 };
}

function sorted(picked, order) {
  const keys = { name: tools.names, slug: tools.slugs }[order];
  return keys ? [...picked].sort((one, other) => (keys[one] < keys[other] ? -1 : 1)) : picked;
}

/** Writes next to each value of a facet how many tools it would leave, given the other facets. */
function showCounts(form, state, counted, tests) {
  const { picked: candidates } = searched(state, () => true);
  for (const name of COUNTED) {
    const others = [...tests].filter(([other]) => other !== name).map(([, test]) => test);
    const counts = new Uint32Array(counted[name].values.length);
    for (const tool of candidates) {
      if (others.every((test) => test(tool)))
        for (const value of counted[name].of(tool)) counts[value] += 1;
    }
    [...field(form, name).options].slice(1).forEach((option, place) => {
      option.textContent = `${counted[name].names[place]} (${number(counts[place])})`;
      option.disabled = !counts[place] && !option.selected;
    });
  }
}

function toolItem(tool) {
  const icon = toolkitLogo(tools.toolkits[tools.toolkitOf[tool]]);
  const link = make("a", { href: toolPage(tools.slugs[tool]) }, icon, tools.names[tool]);
  const text = make("p");
  fillSummary(tool, text);
  return make(
    "li",
    {},
    link,
    " ",
    identifier(tools.slugs[tool], { class: "slug" }),
    ...badges(tools.flags[tool]),
    text
  );
}

/** Fills in the summary of a tool, as soon as the file with it and others is here. */
function fillSummary(tool, element) {
  const shard = Math.floor(tool / tools.shard);
  const fill = (texts) => (element.textContent = texts[tool - shard * tools.shard] || "");
  load(`search/${shard}.js`).then(fill, () => {}); // a result without its summary is still a result
}

function foundText(count, partly) {
  if (!count) return "No tool found";
  const which = partly ? "No tool has all the words. With some of them: " : "";
  const rest = count > MAX_LISTED ? `, the first ${number(MAX_LISTED)} are shown` : "";
  return `${which}${counted(count)}${rest}`;
}

/** What the facets change on the page, and how it was before. */
function facetPage(form) {
  const found = document.querySelector(".found");
  const written = [...document.querySelectorAll("#list, nav.pages")];
  const list = make("ol", { class: "tools", hidden: "" });
  const chips = make("ul", { class: "chips", hidden: "", "aria-label": "Active filters" });
  const clear = make("button", { type: "button", class: "facets-clear" }, "Clear all");
  if (document.getElementById("list")) document.getElementById("list").after(list);
  form.after(chips);
  return { form, found, before: found ? found.textContent : "", written, list, chips, clear };
}

function chipText(form, name, value) {
  const control = field(form, name);
  if (name === "deprecated") return "Without deprecated";
  const text =
    control.localName === "select" && control.selectedOptions[0]
      ? control.selectedOptions[0].textContent.replace(/ \([\d,]+\)$/, "")
      : value;
  return `${FACETS[name]}: ${text}`;
}

function showChips(page, state) {
  const active = [...state].filter(([name, value]) => value && name !== "sort");
  const chip = ([name, value]) => {
    const text = chipText(page.form, name, value);
    return make(
      "li",
      {},
      make(
        "button",
        { type: "button", "data-facet": name, "aria-label": `Remove filter ${text}` },
        `${text} ×`
      )
    );
  };
  page.chips.replaceChildren(
    ...active.map(chip),
    ...(active.length > 1 ? [make("li", {}, page.clear)] : [])
  );
  page.chips.hidden = !active.length;
}

function showFacets(page, state, counted) {
  const any = [...state.values()].some(Boolean);
  const tests = facetTests(state, counted);
  const passes = (tool) => [...tests.values()].every((test) => test(tool));
  const { picked, partly } = any ? searched(state, passes) : { picked: [], partly: false };
  for (const element of page.written) element.hidden = any;
  page.list.hidden = !any;
  page.list.replaceChildren(
    ...sorted(picked, state.get("sort")).slice(0, MAX_LISTED).map(toolItem)
  );
  if (page.found) page.found.textContent = any ? foundText(picked.length, partly) : page.before;
  showCounts(page.form, state, counted, tests);
  showChips(page, state);
}

/** Puts the state into the address. A run of typing is one step back, not one for each letter. */
function addressKeeper() {
  let typing = false;
  return (state, typed) => {
    const address = addressOf(state);
    if (address !== location.pathname + location.search)
      replaceAddress(address, !(typed && typing));
    typing = typed;
  };
}

function startFacets() {
  const form = document.querySelector("form.facets");
  if (!form) return;
  const page = facetPage(form);
  const keep = addressKeeper();
  let state = readAddress();
  let counted = null;
  const show = () => counted && showFacets(page, state, counted);
  const apply = (next, typed) => {
    state = next;
    writeForm(form, state);
    keep(state, typed);
    show();
  };
  form.addEventListener("submit", (event) => event.preventDefault());
  const more = form.querySelector(".facets-more"); // shown on small screens
  more.addEventListener("click", () =>
    more.setAttribute("aria-expanded", String(more.getAttribute("aria-expanded") !== "true"))
  );
  form.addEventListener("input", (event) => {
    state = readForm(form);
    keep(state, event.target.name === "q");
    show();
  });
  page.chips.addEventListener("click", (event) => {
    const name = event.target.dataset.facet;
    if (name) apply(new Map(state).set(name, ""), false);
    else if (event.target === page.clear)
      apply(new Map([...state.keys()].map((key) => [key, ""])), false);
    if (name || event.target === page.clear) field(form, "q").focus();
  });
  addEventListener("popstate", () => {
    state = readAddress();
    writeForm(form, state);
    show();
  });
  writeForm(form, state);
  Promise.all([load("facets.js"), loadWords()]).then(
    ([facets]) => {
      counted = countedFacets(facets);
      fillSelects(form, counted);
      writeForm(form, state);
      show();
    },
    () => (form.hidden = true) // the written list is still there
  );
}
