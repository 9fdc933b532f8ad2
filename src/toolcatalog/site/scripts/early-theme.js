/* Runs before anything is painted: sets the theme that the reader chose, and tells the style sheet
   that scripts run. */
document.documentElement.classList.add("js");
try {
  const theme = localStorage.getItem("toolcatalog.theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch {
  // storage is not allowed: the theme of the system
}
