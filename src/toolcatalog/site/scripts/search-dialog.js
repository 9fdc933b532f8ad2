/* The search dialog: a combobox whose list is always open. The focus stays in the field, and the
   active option is named by reference. */

const MAX_RESULTS = 30;
const LARGEST = 8; // toolkits that are offered before anything is typed

function makeField() {
  const attributes = {
    type: "text",
    class: "search-input",
    role: "combobox",
    "aria-label": "Search tools",
    placeholder: "Search tools",
  };
  const list = {
    "aria-controls": "search-list",
    "aria-expanded": "false",
    "aria-autocomplete": "list",
    "aria-haspopup": "listbox",
  };
  const plainly = {
    autocomplete: "off",
    autocapitalize: "off",
    autocorrect: "off",
    spellcheck: "false",
    enterkeyhint: "go",
  };
  return make("input", { ...attributes, ...list, ...plainly });
}

function makeHelp() {
  const slash = make("input", { type: "checkbox" });
  slash.checked = recall("slash") !== "off";
  slash.addEventListener("change", () => remember("slash", slash.checked ? "on" : "off"));
  const keys = make("span", { class: "search-keys" });
  for (const [key, text] of [
    ["↑ ↓", "choose"],
    ["↵", "open"],
    ["Esc", "close"],
  ])
    keys.append(make("kbd", {}, key), ` ${text} `);
  return make(
    "div",
    { class: "search-help" },
    keys,
    make("label", {}, slash, " Open with ", make("kbd", {}, "/"))
  );
}

function makeDialog() {
  const input = makeField();
  const close = make(
    "button",
    { type: "button", class: "search-close", "aria-label": "Close search" },
    "×"
  );
  const count = make("p", { class: "search-count", role: "status" });
  const list = make("div", {
    class: "search-list",
    id: "search-list",
    role: "listbox",
    "aria-label": "Tools",
  });
  const link = make("a", { href: allTools("") });
  const all = make("p", { class: "search-all" }, link);
  const box = make(
    "div",
    { class: "search-box" },
    make("div", { class: "search-bar" }, input, close),
    count,
    list,
    all,
    makeHelp()
  );
  const dialog = make("dialog", { id: "search", "aria-label": "Search" }, box);
  document.body.append(dialog);
  return {
    dialog,
    box,
    input,
    close,
    count,
    list,
    link,
    all,
    options: [],
    active: null,
    opener: null,
    timer: 0,
    waiting: false, // for the words of texts
  };
}

/** The text in pieces, words that begin as typed marked. */
function marked(text, typed) {
  const pieces = text.split(/([\p{L}\p{N}]+)/u);
  const begins = (piece) => typed.some((word) => plain(piece).startsWith(word));
  return pieces.map((piece, place) =>
    place % 2 && begins(piece) ? make("mark", {}, piece) : piece
  ); // words are at odd places
}

/** Each option is a link, so that it can be opened in a new tab or copied like any other. */
function makeOption(tool, typed) {
  const name = make("span", { class: "search-name" }, ...marked(index.names[tool], typed));
  const text = make("span", { class: "search-text" });
  const slug = identifier(index.slugs[tool], { class: "slug" });
  const attributes = {
    class: "search-option",
    role: "option",
    "aria-selected": "false",
    tabindex: "-1",
  };
  const parts = [name, slug, ...badges(index.flags[tool]), text];
  const element = make("a", { ...attributes, href: toolPage(index.slugs[tool]) }, ...parts);
  return { tool, typed, text, element };
}

function makeToolkitOption(toolkit) {
  const [slug, name, count] = toolkit;
  const attributes = {
    class: "search-option",
    role: "option",
    "aria-selected": "false",
    tabindex: "-1",
  };
  const href = `${home}toolkits/${slug}/index.html`;
  const title = make("span", { class: "search-name" }, toolkitLogo(toolkit), name);
  return {
    element: make(
      "a",
      { ...attributes, href },
      title,
      make("span", { class: "count" }, counted(count))
    ),
  };
}

function makeGroup(name, members) {
  const title = make("span", { class: "search-toolkit", "aria-hidden": "true" }, name);
  const attributes = { class: "search-group", role: "group", "aria-label": name };
  return {
    members,
    element: make("div", attributes, title, ...members.map((option) => option.element)),
  };
}

/** What is offered before anything is typed: recent changes, and the largest toolkits. */
function startGroups() {
  const places = new Map(index.slugs.map((slug, place) => [slug, place]));
  const recent = index.recent
    .filter((slug) => places.has(slug))
    .map((slug) => makeOption(places.get(slug), []));
  const largest = [...index.toolkits].sort((one, other) => other[2] - one[2]).slice(0, LARGEST);
  const groups = [
    makeGroup("Recently changed", recent),
    makeGroup("Toolkits", largest.map(makeToolkitOption)),
  ];
  return groups.filter((group) => group.members.length);
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
    const title = make(
      "span",
      { class: "search-toolkit", "aria-hidden": "true" },
      toolkitLogo(index.toolkits[toolkit]),
      name
    );
    const attributes = { class: "search-group", role: "group", "aria-label": name };
    return {
      members,
      element: make("div", attributes, title, ...members.map((option) => option.element)),
    };
  });
}

function activate(ui, option, scroll) {
  if (ui.active) ui.active.element.setAttribute("aria-selected", "false");
  ui.active = option || null;
  if (!option) return ui.input.removeAttribute("aria-activedescendant");
  option.element.setAttribute("aria-selected", "true");
  ui.input.setAttribute("aria-activedescendant", option.element.id);
  if (scroll)
    (option === ui.options[0]
      ? option.element.closest(".search-group")
      : option.element
    ).scrollIntoView({ block: "nearest" });
}

function describeOption({ tool, typed, text }) {
  const shard = Math.floor(tool / index.shard);
  const fill = (texts) =>
    text.replaceChildren(...marked(texts[tool - shard * index.shard] || "", typed));
  load(`search/${shard}.js`).then(fill, () => {}); // a result without its summary is still a result
}

/** Descriptions: those that are here at once, others for what is in view once typing pauses, as
    each is in a file with 499 more. */
function describe(ui) {
  clearTimeout(ui.timer);
  ui.watcher =
    ui.watcher ||
    new IntersectionObserver((entries) => {
      for (const entry of entries.filter((one) => one.isIntersecting)) {
        ui.watcher.unobserve(entry.target);
        const option = ui.options.find((one) => one.element === entry.target);
        if (option) describeOption(option);
      }
    });
  ui.watcher.disconnect();
  const tools = ui.options.filter((option) => option.text);
  const here = (option) => arrived.has(`search/${Math.floor(option.tool / index.shard)}.js`);
  tools.filter(here).forEach(describeOption);
  ui.timer = setTimeout(
    () =>
      tools
        .filter((option) => !here(option))
        .forEach((option) => ui.watcher.observe(option.element)),
    120
  );
}

function countText(query, { all, some }, shown) {
  if (!words(query).length) return `${counted(index.slugs.length)} to search`;
  if (!shown) return "No tool found";
  if (!all)
    return `${some > shown ? `Best ${shown} of ` : ""}${counted(some)} with some of the words`;
  if (all > shown) return `Best ${shown} of ${counted(all)}`;
  return all < shown ? `${counted(all)}, ${shown - all} more with some of the words` : counted(all);
}

/** Offers the list of all tools: as found where not all is shown here, whole where nothing is. */
function offerAll(ui, query, found, shown) {
  const more = (found.all || found.some) > shown;
  ui.all.hidden = shown > 0 && !more;
  ui.link.href = allTools(more ? query.trim() : "");
  ui.link.textContent = more
    ? `Show all ${number(found.all || found.some)} in the list`
    : "Open the list of all tools";
}

function showResults(ui) {
  const query = ui.input.value;
  const found = find(index, query, MAX_RESULTS);
  const typed = queryWords(query, index.synonyms).map(({ word }) => word);
  const groups = typed.length
    ? makeGroups(found.tools.map((tool) => makeOption(tool, typed)))
    : startGroups();
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
  // the best tool for a sentence may have some of its words in the text only
  if (!index.hasTexts && !ui.waiting && (typed.length > 1 || (typed.length && !found.all))) {
    ui.waiting = true;
    loadWords()
      .finally(() => (ui.waiting = false))
      .then(
        () => showResults(ui),
        () => {}
      );
  }
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
  const places = new Map([
    ["ArrowDown", current + 1],
    ["ArrowUp", current - 1],
    ["Home", 0],
    ["End", -1],
  ]);
  const size = ui.options.length;
  return places.has(key) && size ? ui.options[(places.get(key) + size) % size] : null;
}

function searchKey(ui, event) {
  if (event.isComposing || event.shiftKey || event.altKey) return;
  const option = optionForKey(ui, event.key);
  // with these a browser opens a link in a new tab
  const held = { ctrlKey: event.ctrlKey, metaKey: event.metaKey };
  if (event.key === "Enter") {
    event.preventDefault();
    const link = ui.active ? ui.active.element : ui.link;
    if (!ui.all.hidden || ui.active)
      link.dispatchEvent(new MouseEvent("click", { bubbles: true, cancelable: true, ...held }));
  } else if (option && !event.ctrlKey && !event.metaKey) {
    event.preventDefault();
    activate(ui, option, true);
  }
}

function listenInDialog(ui) {
  const optionAt = (event) => ui.options.find((option) => option.element.contains(event.target));
  ui.input.addEventListener("input", () => searchAgain(ui));
  ui.input.addEventListener("keydown", (event) => searchKey(ui, event));
  // the focus stays in the field
  ui.list.addEventListener("mousedown", (event) => event.preventDefault());
  ui.list.addEventListener("pointermove", (event) => {
    const option = optionAt(event);
    if (option && option !== ui.active) activate(ui, option, false);
  });
  ui.close.addEventListener("click", () => ui.dialog.close());
  ui.dialog.addEventListener("click", (event) => {
    const leaves =
      event.target instanceof Element &&
      event.target.closest("a") &&
      !event.ctrlKey &&
      !event.metaKey &&
      !event.shiftKey;
    // the dialog itself is the target only outside of its box
    if (leaves || event.target === ui.dialog) ui.dialog.close();
  });
  ui.dialog.addEventListener("close", () => {
    if (!(ui.opener instanceof HTMLElement)) return;
    if (ui.opener.closest(".search-first")) ui.opener.value = ui.input.value;
    ui.opener.focus();
  });
}

/** Opens the dialog, with `text` if any; else what was looked for last, selected so that typing
    replaces it. */
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
  return (
    target instanceof HTMLElement &&
    (target.isContentEditable || target.closest("input, textarea, select") !== null)
  );
}

function globalKey(dialog, event) {
  if (event.isComposing || event.altKey) return;
  const command =
    (mac ? event.metaKey : event.ctrlKey) && !event.shiftKey && event.key.toLowerCase() === "k";
  const slash =
    event.key === "/" &&
    !event.ctrlKey &&
    !event.metaKey &&
    !isTyping(event.target) &&
    recall("slash") !== "off";
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

/** The words of the address of a page that is missing, such as those of a misspelled slug. */
function missingWords() {
  const [, name = ""] = /([^/.]+)(?:\/|\/index)?(?:\.\w+)?$/.exec(location.pathname) || [];
  return name === "404" ? "" : words(name.replace(/%../g, " ")).join(" ");
}

/** The field on the home page opens the dialog with its first letter. Not amid a composition, which
    the change of field would break. */
function startSearchField(dialog, input) {
  const open = (event) => {
    if (!event.isComposing && input.value) openSearch(dialog(), input, input.value);
  };
  if (input.dataset.missing === "") input.value = missingWords();
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
