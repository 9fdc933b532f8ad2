/* Tabs: sections with a heading become panels, one of which shows. */

/** One tab and its panel out of a section with a heading; null where there is no heading to name it
    by. */
function makeTab(section, fallbackId) {
  const heading = section.querySelector("h2, h3, h4");
  if (!heading) return null;
  section.id = section.id || fallbackId;
  const attributes = {
    type: "button",
    class: "tab",
    role: "tab",
    id: `${section.id}-tab`,
    "aria-controls": section.id,
  };
  const button = make("button", attributes, heading.textContent.trim());
  heading.hidden = true;
  section.setAttribute("role", "tabpanel");
  section.setAttribute("aria-labelledby", button.id);
  // else Tab already leads into it
  if (!section.querySelector("a[href], button, [tabindex]")) section.tabIndex = 0;
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
  const steps = new Map([
    ["ArrowRight", current + 1],
    ["ArrowLeft", current - 1],
    ["Home", 0],
    ["End", -1],
  ]);
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
  const tabs = sections
    .map((section, at) => makeTab(section, `tabs-${place}-${at}`))
    .filter(Boolean);
  if (tabs.length < 1) return;
  const choose = (tab) => {
    selectTab(tabs, tab);
    chooseTab(sets, key, tab.name);
  };
  const list = make("div", {
    class: "tab-list",
    role: "tablist",
    "aria-label": box.getAttribute("aria-label") || key,
  });
  list.append(...tabs.map((tab) => tab.button));
  list.addEventListener("click", (event) => {
    const tab = tabs.find((one) => one.button.contains(event.target));
    if (tab) choose(tab);
  });
  list.addEventListener("keydown", (event) => {
    const tab = tabForKey(
      tabs,
      tabs.findIndex((one) => one.button === event.target),
      event.key
    );
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

function startTabs() {
  const sets = [];
  each(".tabs", (box, place) => makeTabs(box, place, sets));
  if (!sets.length) return;
  openLinkedTab(sets);
  addEventListener("hashchange", () => openLinkedTab(sets));
}
