// `#/page/arguments` to a page. A page is `{ title, show(outlet, args) }`; `show` returns what to
// call when the page is left.

import { say } from "./dom.js";

const HOME = "#/flow";

/** "#/users/17" as ["users", "17"]; anything that is not a route as null. */
export function parse(hash) {
  if (!hash.startsWith("#/")) return null;
  try {
    return hash.slice(2).split("/").filter(Boolean).map(decodeURIComponent);
  } catch {
    return null;
  }
}

/** The address of a page: `route("users", "17")`. */
export function route(...parts) {
  return `#/${parts.map(encodeURIComponent).join("/")}`;
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
    const page = parts?.length ? pages[parts[0]] : undefined;
    if (!page) {
      location.replace(HOME);
      return;
    }
    leave();
    outlet.replaceChildren();
    document.title = `${page.title} · Tidings`;
    markCurrent(parts[0]);
    leave = page.show(outlet, parts.slice(1)) ?? (() => {});
    if (!first) arrive(outlet, page.title);
    first = false;
  }

  addEventListener("hashchange", go, { signal: stopping.signal });
  go();
  return () => {
    stopping.abort();
    leave();
    outlet.replaceChildren();
  };
}

// A link inside one document moves no focus: without this a keyboard stays at the old place, and
// a screen reader says nothing.
function arrive(outlet, title) {
  scrollTo(0, 0);
  const heading = outlet.querySelector("h1");
  heading?.setAttribute("tabindex", "-1");
  heading?.focus({ preventScroll: true });
  say(title);
}

function markCurrent(name) {
  for (const link of document.querySelectorAll("#nav a")) {
    if (parse(link.hash)[0] === name) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}
