// `#/page/arguments?query` to a page. A page is `{ title, show(outlet, args, query) }`; `show` returns what to
// call when the page is left.

import { focusHeading, say } from "./dom.js";
import { noPageKeys } from "./keys.js";

const HOME = "#/flow";

/** "#/users/17" as ["users", "17"]; anything that is not a route as null. */
export function parse(hash) {
  if (!hash.startsWith("#/")) return null;
  try {
    // An empty part is one: a key may be empty.
    return hash.slice(2).split("?", 1)[0].split("/").map(decodeURIComponent);
  } catch {
    return null;
  }
}

/** The address of a page: `route("users", "17")`. */
export function route(...parts) {
  return `#/${parts.map(encodeURIComponent).join("/")}`;
}

/** The address of a page with a query; what is empty in it is left out. */
export function routeWith(query, ...parts) {
  const text = new URLSearchParams(Object.entries(query).filter(([, value]) => value)).toString();
  return text ? `${route(...parts)}?${text}` : route(...parts);
}

function queryOf(hash) {
  return Object.fromEntries(new URLSearchParams(hash.split("?")[1] ?? ""));
}

/** Shows pages into `outlet` as the address says, until the returned function is called. */
export function start(outlet, pages) {
  const stopping = new AbortController();
  let leave = () => {};
  let first = true;

  function go() {
    // "#main" is the skip link's: not a route, and no reason to leave the page.
    if (location.hash && !location.hash.startsWith("#/")) return;
    const parts = parse(location.hash);
    const page = parts?.length && Object.hasOwn(pages, parts[0]) ? pages[parts[0]] : undefined;
    if (!page) {
      location.replace(HOME);
      return;
    }
    leave();
    noPageKeys();
    outlet.replaceChildren();
    document.title = `${page.title} · Tidings`;
    markCurrent(parts[0]);
    leave = page.show(outlet, parts.slice(1), queryOf(location.hash)) ?? (() => {});
    if (!first) arrive(page.title);
    first = false;
  }

  addEventListener("hashchange", go, { signal: stopping.signal });
  go();
  return () => {
    stopping.abort();
    leave();
    noPageKeys();
    outlet.replaceChildren();
  };
}

// A link inside one document moves no focus: without this a keyboard stays at the old place, and
// a screen reader says nothing.
function arrive(title) {
  scrollTo(0, 0);
  focusHeading();
  say(title);
}

function markCurrent(name) {
  for (const link of document.querySelectorAll("#nav a")) {
    if (parse(link.hash)[0] !== name) {
      link.removeAttribute("aria-current");
      continue;
    }
    link.setAttribute("aria-current", "page");
    // On a narrow screen the names of the pages scroll sideways.
    link.parentElement.scrollLeft = link.offsetLeft - (link.parentElement.clientWidth - link.offsetWidth) / 2;
  }
}
