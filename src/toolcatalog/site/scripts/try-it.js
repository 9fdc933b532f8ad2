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

async function sendRequest(form, key) {
  const output = form.querySelector("output");
  const address = new URL(field(form, "path").value.replace(/^\/+/, ""), `${siteAddress()}/`);
  if (address.origin !== location.origin)
    return showResponse(output, "", "Only paths of this server.");
  const headers = form.dataset.key === "yes" && key ? { "x-api-key": key } : {};
  try {
    const response = await fetch(address, { headers });
    return showResponse(output, response.status, await response.text());
  } catch (error) {
    return showResponse(output, "", String(error));
  }
}

async function startTryIt() {
  const keyForm = document.querySelector("form.try-key");
  if (!keyForm || !(await isServed())) return;
  keyForm.hidden = false;
  keyForm.addEventListener("submit", (event) => event.preventDefault());
  each("form.try", (form) => {
    form.hidden = false;
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      sendRequest(form, field(keyForm, "key").value.trim());
    });
  });
}
