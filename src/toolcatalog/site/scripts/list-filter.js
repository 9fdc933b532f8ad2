/* The field that filters a list of tools. Groups without a match disappear. */

function filterItems(items, typed, output) {
  const wanted = plain(typed).split(/\s+/).filter(Boolean);
  let shown = 0;
  for (const item of items) {
    item.element.hidden = !wanted.every((word) => item.text.includes(word));
    shown += item.element.hidden ? 0 : 1;
  }
  if (output)
    output.textContent = wanted.length ? `${number(shown)} of ${number(items.length)}` : "";
}

function hideEmptyGroups(list) {
  for (const group of list.querySelectorAll(".group")) {
    group.hidden = !group.querySelector("li:not([hidden])");
  }
}

function startFilter(input) {
  const list = document.getElementById(input.dataset.filter);
  if (!list) return;
  const output = input.parentElement.querySelector(".filter-count");
  let items = null; // read at first need: a list can be long
  const filter = () => {
    if (!items && !input.value) return;
    items =
      items ||
      [...list.querySelectorAll("li")].map((element) => ({
        element,
        text: plain(element.textContent),
      }));
    filterItems(items, input.value, output);
    hideEmptyGroups(list);
  };
  input.addEventListener("input", filter);
  addEventListener("pageshow", filter); // browsers restore the text when a reader comes back
}
