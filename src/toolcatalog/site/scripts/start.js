/* What runs when the page is there. */

function start() {
  say(""); // a status region that exists from the start is read out more reliably
  startTheme();
  startSearch();
  startCopy();
  startTabs();
  each("input.filter", startFilter);
  startCompare();
  startFacets();
  startParameters();
  startLinkedParameter();
  startSidebar();
  startApi();
  startTryIt();
}

start();
