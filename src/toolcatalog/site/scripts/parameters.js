/* "Expand all" for nested parameters. */

function startParameters() {
  each(".tool-body > .params", (list) => {
    const heading = list.previousElementSibling;
    const nested = list.querySelectorAll("details");
    if (!nested.length || !heading) return;
    const button = make("button", { type: "button", class: "expand" }, "Expand all");
    button.addEventListener("click", () => {
      const open = button.textContent === "Expand all";
      nested.forEach((details) => (details.open = open));
      button.textContent = open ? "Collapse all" : "Expand all";
    });
    const row = make("div", { class: "heading-row" });
    heading.replaceWith(row);
    row.append(heading, button);
  });
}

/** A link to a nested parameter opens what it is in. */
function openLinkedParameter() {
  const target = document.getElementById(hash());
  if (!target || !target.closest(".params")) return;
  for (let at = target.parentElement; at; at = at.parentElement)
    if (at.localName === "details") at.open = true;
  target.scrollIntoView();
}

function startLinkedParameter() {
  openLinkedParameter();
  addEventListener("hashchange", openLinkedParameter);
}
