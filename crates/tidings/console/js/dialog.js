// A modal dialog: it keeps the focus while it is open, and gives it back to what opened it.

import { session } from "./api.js";
import { focusHeading, h } from "./dom.js";

const STOPS = "a[href], button, input, select, textarea, summary, [tabindex='0']";

let open = null;
let made = 0;

/** Whether a dialog is open. */
export function isOpen() {
  return open !== null;
}

/**
 * Opens a dialog with a heading and `content`, elements. It closes by Escape, by `close()`, or when its page or
 * the session ends; `onClose()` hears of it. The first field has the focus, or else the heading.
 */
export function dialog({ title, content, onClose }) {
  open?.close();
  const opener = document.activeElement;
  const id = `dialog-${(made += 1)}`;
  const heading = h("h2", { id, tabindex: "-1" }, title);
  const element = h("dialog", { class: "dialog", "aria-labelledby": id }, heading, content);
  const leaving = new AbortController();
  const { signal } = leaving;
  const self = { element, close };

  function close() {
    if (signal.aborted) return;
    leaving.abort();
    element.close();
    element.remove();
    if (open === self) open = null;
    onClose?.();
    giveBack(opener);
  }

  element.addEventListener("keydown", (event) => keepFocus(event, element), { signal });
  // Escape. The event `close` comes with a frame, later than the next key may.
  element.addEventListener("cancel", close, { signal });
  element.addEventListener("close", close, { signal });
  addEventListener("hashchange", close, { signal });
  session.addEventListener("lost", close, { signal });

  document.body.append(element);
  element.showModal();
  open = self;
  const first = element.querySelector("input, select, textarea") ?? heading;
  first.focus();
  // As Tab would: what stands there is written over.
  first.select?.();
  return self;
}

// The browser would let Tab go on to its own bar; there is nothing there for this dialog.
function keepFocus(event, element) {
  if (event.key !== "Tab") return;
  const stops = [...element.querySelectorAll(STOPS)].filter((stop) => stop.checkVisibility());
  const at = stops.indexOf(document.activeElement);
  const last = stops.length - 1;
  if (event.shiftKey ? at <= 0 : at === last) {
    event.preventDefault();
    stops[event.shiftKey ? last : 0]?.focus();
  }
}

// The row that opened it may be gone by what was done: then the page's heading has the focus.
function giveBack(opener) {
  if (opener?.isConnected && opener !== document.body) opener.focus();
  else focusHeading();
}
