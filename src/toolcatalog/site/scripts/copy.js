/* Copy buttons. */

/** The way without the clipboard API. A field of its own, because what is
    hidden cannot be selected. */
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

/** Shows a word on a button for two seconds; a second press while it is shown starts the two
    seconds again. */
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
    button.addEventListener("click", async () => {
      const word = (await copy(source.textContent)) ? "Copied" : "Not copied";
      flash(button, word, shown);
      say(word);
    });
  });
}
