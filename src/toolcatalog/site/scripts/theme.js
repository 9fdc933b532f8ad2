/* The theme: system, light or dark. `early-theme.js` sets it before anything is painted. */

const THEMES = ["system", "light", "dark"];
const THEME_SIGNS = { system: "◐", light: "○", dark: "●" };

function theme() {
  return THEMES.find((one) => one === recall("theme")) || "system";
}

function showTheme() {
  if (theme() === "system") delete root.dataset.theme;
  else root.dataset.theme = theme();
  each("button.theme", (button) => {
    button.dataset.choice = theme();
    const name = `${theme()[0].toUpperCase()}${theme().slice(1)}`;
    button.replaceChildren(THEME_SIGNS[theme()], make("span", {}, ` ${name}`));
    button.setAttribute("aria-label", `Theme: ${theme()}`);
  });
}

function nextTheme() {
  remember("theme", THEMES[(THEMES.indexOf(theme()) + 1) % THEMES.length]);
  showTheme();
  say(`Theme: ${theme()}`);
}

function startTheme() {
  showTheme();
  each("button.theme", (button) => {
    button.addEventListener("click", nextTheme);
    button.hidden = false;
  });
  addEventListener("storage", showTheme); // chosen in another tab
}
