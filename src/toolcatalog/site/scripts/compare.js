/* History: one pair of versions at a time. */

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
  restore();
}
