/* The address of the API in snippets: that of this server, if it has the API. */

let served = null;

/** The address of the site, which is that of the API too if the server has it. */
function siteAddress() {
  return new URL(home || "./", location.href).href.replace(/\/$/, "");
}

/** Whether the server of this page is toolcatalog's own: it names the snapshot in each response. */
function isServed() {
  if (!location.protocol.startsWith("http")) return Promise.resolve(false);
  served =
    served ||
    fetch(location.href, { method: "HEAD" }).then(
      (response) => response.headers.has("x-catalog-snapshot"),
      () => false
    );
  return served;
}

/** In code the address is an environment variable, in shell within quotes. */
function writeAddress(element) {
  const inShell = element.textContent.startsWith("$");
  element.textContent = inShell ? siteAddress() : JSON.stringify(siteAddress());
}

async function startApi() {
  if (document.querySelector("span.api") && (await isServed())) each("span.api", writeAddress);
}
