// Is the server there? One answer for the whole console: the dot in the bar, the banner, and the
// signal on which pages take up their work again.

import { h, setText } from "./dom.js";
import { duration } from "./format.js";

// Gaps between knocks grow to a cap: a restart is noticed within a second, an outage costs little.
const GAPS_MS = [500, 1000, 1000, 2000, 3000, 5000];

/** Dispatches "found" when the server answers again after it was lost. */
export const connection = new EventTarget();

let lostSince = null;
let knocks = 0;
let timer = 0;

/** True while the server is not reachable. */
export function isLost() {
  return lostSince !== null;
}

/** A request got no answer. */
export function lost() {
  if (lostSince !== null) return;
  lostSince = Date.now();
  knocks = 0;
  show();
  knockLater();
}

/** A request got an answer, whatever it says. */
export function found() {
  if (lostSince === null) return;
  lostSince = null;
  clearTimeout(timer);
  show();
  connection.dispatchEvent(new Event("found"));
}

function knockLater() {
  clearTimeout(timer);
  timer = setTimeout(knock, GAPS_MS[Math.min(knocks, GAPS_MS.length - 1)]);
  knocks += 1;
}

async function knock() {
  // A hidden tab waits; `visibilitychange` below takes it up again.
  if (document.hidden) return;
  try {
    await fetch("/health/live", { cache: "no-store", signal: AbortSignal.timeout(4000) });
    found();
  } catch {
    show();
    knockLater();
  }
}

document.addEventListener("visibilitychange", () => {
  if (lostSince !== null && !document.hidden) {
    knocks = 0;
    knockLater();
  }
  show();
});

/** Writes the state into the bar and the banner. Called once at the start, too. */
export function show() {
  const state = lostSince !== null ? "lost" : document.hidden ? "paused" : "live";
  const mark = document.getElementById("link-state");
  mark.dataset.state = state;
  setText(mark.lastElementChild, { lost: "Not reachable", paused: "Paused", live: "Connected" }[state]);

  const banner = document.getElementById("banner");
  banner.hidden = lostSince === null;
  // The text changes once per outage, not per knock: it is a live region.
  if (lostSince !== null && banner.childElementCount === 0) {
    banner.replaceChildren(
      h("strong", {}, "The server is not reachable."),
      " What you see is the last answer. The console goes on by itself when it is back.",
    );
  }
  if (lostSince === null) banner.replaceChildren();
  mark.title = lostSince === null ? "" : `No answer for ${duration(Date.now() - lostSince)}`;
  document.body.classList.toggle("stale", lostSince !== null);
}
