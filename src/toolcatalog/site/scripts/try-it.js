/* "Try it" in the API reference: sends a request to this server, if it has the API. The key is
   neither stored nor sent anywhere else. */

const MAX_SHOWN = 20000; // characters of a response

function showResponse(output, status, text) {
  let body = text;
  try {
    body = JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    // not JSON
  }
  const shown = body.length > MAX_SHOWN ? `${body.slice(0, MAX_SHOWN)}\n…` : body;
  const title = make("h3", {}, `Response ${status}`);
  const code = make("pre", { tabindex: "0", "aria-label": "Response" }, make("code", {}, shown));
  output.replaceChildren(make("div", { class: "panel" }, title, code));
}

async function sendRequest(form) {
  const output = form.querySelector("output");
  const address = new URL(field(form, "path").value.replace(/^\/+/, ""), `${siteAddress()}/`);
  if (address.origin !== location.origin)
    return showResponse(output, "", "Only paths of this server.");
  const key = field(form, "key") && field(form, "key").value.trim();
  try {
    const response = await fetch(address, { headers: key ? { "x-api-key": key } : {} });
    return showResponse(output, response.status, await response.text());
  } catch (error) {
    return showResponse(output, "", String(error));
  }
}

/** Copies the key to the other forms, so that a reader enters it once. */
function shareKey(event) {
  if (event.target.name !== "key") return;
  each("form.try [name=key]", (other) => (other.value = event.target.value));
}

async function startTryIt() {
  if (!document.querySelector("form.try") || !(await isServed())) return;
  each("button.try-open", (button) => {
    const form = document.getElementById(button.getAttribute("aria-controls"));
    button.hidden = false;
    button.addEventListener("click", () => {
      form.hidden = !form.hidden;
      button.setAttribute("aria-expanded", String(!form.hidden));
      if (!form.hidden) form.querySelector("input").focus();
    });
    form.addEventListener("input", shareKey);
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      sendRequest(form);
    });
  });
}
