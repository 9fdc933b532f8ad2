/* Side navigation: the tools of a toolkit with a filter, and tools similar to the current one.
   The data is one file for each toolkit, which the pages of all its tools share. */

const SIMILAR = 4; // tools
const SIDE_LIMIT = 12; // tools: shorter lists need no filter

function readToolkit(data) {
  const names = data.names.split("\n");
  return data.slugs.split("\n").map((slug, place) => ({
    slug,
    name: names[place],
    flags: parseInt(data.flags[place], 32),
    group: data.groups[data.group[place]],
  }));
}

function sideItem(tool, current) {
  const attributes = { href: toolPage(tool.slug), title: tool.slug };
  if (tool.slug === current) attributes["aria-current"] = "page";
  if (tool.flags & DEPRECATED) attributes.class = "gone";
  return make("li", {}, make("a", attributes, tool.name));
}

/** The tools by subject, large groups first; then those without one, then deprecated ones. */
function sideGroups(tools) {
  const groups = new Map();
  for (const tool of tools.filter((one) => !(one.flags & DEPRECATED)))
    groups.set(tool.group, [...(groups.get(tool.group) || []), tool]);
  const size = ([name, members]) => (name ? members.length : 0);
  const sorted = [...groups].sort((one, other) => size(other) - size(one));
  const deprecated = tools.filter((one) => one.flags & DEPRECATED);
  return deprecated.length ? [...sorted, ["deprecated", deprecated]] : sorted;
}

function fillSide(nav, tools) {
  const current = nav.dataset.current;
  const groups = sideGroups(tools);
  const list = make("div", { id: "side-list" });
  for (const [name, members] of groups) {
    const title = groups.length > 1 ? [make("p", { class: "side-title" }, name || "other")] : [];
    const items = members.map((tool) => sideItem(tool, current));
    list.append(make("section", { class: "group" }, ...title, make("ul", {}, ...items)));
  }
  const details = nav.querySelector("details");
  if (tools.length > SIDE_LIMIT) {
    const label = "Filter the tools in the navigation";
    const input = make("input", {
      type: "search",
      placeholder: `Filter ${counted(tools.length)}`,
      "aria-label": label,
      "data-filter": "side-list",
    });
    details.append(make("p", {}, input));
    details.append(list);
    startFilter(input);
  } else details.append(list);
  showCurrent(nav);
}

/** Scrolls the navigation, and not the page, to the current tool. */
function showCurrent(nav) {
  const link = nav.querySelector("[aria-current]");
  if (!link || getComputedStyle(nav).position !== "sticky") return;
  const offset = link.getBoundingClientRect().top - nav.getBoundingClientRect().top;
  if (offset > nav.clientHeight - 40) nav.scrollTop = offset - nav.clientHeight / 3;
}

/** The tools that share most rare words of their names with this one. */
function similarTools(tools, current) {
  const wordsOf = (tool) => new Set([...words(tool.name), ...words(tool.group || "")]);
  const counts = new Map();
  for (const tool of tools)
    for (const word of wordsOf(tool)) counts.set(word, (counts.get(word) || 0) + 1);
  const mine = wordsOf(current);
  const points = (tool) =>
    [...wordsOf(tool)].reduce((sum, word) => sum + (mine.has(word) ? 1 / counts.get(word) : 0), 0);
  return tools
    .filter((tool) => tool !== current && !(tool.flags & DEPRECATED))
    .map((tool) => ({ tool, points: points(tool) }))
    .filter((one) => one.points > 0)
    .sort((one, other) => other.points - one.points || (one.tool.slug < other.tool.slug ? -1 : 1))
    .slice(0, SIMILAR)
    .map((one) => one.tool);
}

function showSimilar(tools, slug) {
  const body = document.querySelector(".tool-body");
  const current = tools.find((tool) => tool.slug === slug);
  const similar = current ? similarTools(tools, current) : [];
  if (!body || !similar.length) return;
  const item = (tool) =>
    make(
      "li",
      {},
      make("a", { href: toolPage(tool.slug) }, tool.name),
      identifier(tool.slug),
      ...badges(tool.flags)
    );
  body.append(
    make("h2", { id: "similar" }, "Similar tools"),
    make("ul", { class: "similar" }, ...similar.map(item))
  );
}

/** Closes the navigation on small screens, where it comes before the page. */
function foldSide(nav) {
  const wide = matchMedia("(min-width: 64rem)");
  const details = nav.querySelector("details");
  details.open = wide.matches;
  wide.addEventListener("change", (event) => (details.open = event.matches));
  nav.classList.add("ready");
}

function startSidebar() {
  each("nav.side", foldSide);
  const nav = document.querySelector("nav.side[data-toolkit]");
  if (!nav) return;
  load(`toolkits/${nav.dataset.toolkit}/tools.js`).then(
    (data) => {
      const tools = readToolkit(data);
      fillSide(nav, tools);
      showSimilar(tools, nav.dataset.current);
      linkSlugs(
        tools.map((tool) => tool.slug),
        nav.dataset.current
      );
    },
    () => {} // the link to the toolkit is still there
  );
}
