// <time> elements that keep saying the truth: relative text, absolute title.

import { h, setText } from "./dom.js";
import { NOTHING, absolute, ago } from "./format.js";

// The server's clock, not the browser's, is what its times are measured against; a laptop that is
// ten minutes off must not show events from the future.
let skewMs = 0;

/** Tells this page what time the server has: `at` is RFC 3339 text. */
export function learnServerTime(at) {
  skewMs = Date.parse(at) - Date.now();
}

/** Now, by the server's clock, in epoch milliseconds. */
export function serverNow() {
  return Date.now() + skewMs;
}

/** A <time> for RFC 3339 text; a dash for none. */
export function timeElement(text) {
  const at = text ? Date.parse(text) : NaN;
  if (Number.isNaN(at)) return h("span", {}, NOTHING);
  return h("time", { datetime: text, title: absolute(at) }, ago(at, serverNow()));
}

// One timer for all of them; a hidden tab refreshes nothing.
setInterval(() => {
  if (document.hidden) return;
  for (const element of document.querySelectorAll("time[datetime]")) {
    setText(element, ago(Date.parse(element.dateTime), serverNow()));
  }
}, 1000);
