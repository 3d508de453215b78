// Shortcuts: of the console everywhere, and of the page that is shown. Each is written on its page, and every one
// only repeats what Tab and Enter reach as well.

import { dialog, isOpen } from "./dialog.js";
import { h, say, setText } from "./dom.js";

const STORE = "tidings-keys";
// How long "g" waits for the page's letter.
const PAIR_MS = 1500;

const PLACES = {
  f: ["#/flow", "Flow"],
  e: ["#/events", "Events"],
  j: ["#/journey", "Journey"],
  u: ["#/users", "Users"],
  p: ["#/parked", "Parked"],
  b: ["#/rebuilds", "Rebuilds"],
  c: ["#/reconciliation", "Reconciliation"],
  a: ["#/audit", "Audit"],
};

let page = [];
let isOn = remembered() !== "off";
let waiting = 0;

// Storage may be refused: then the choice lives as long as the page.
function remembered() {
  try {
    return localStorage.getItem(STORE);
  } catch {
    return null;
  }
}

/** Registers the shortcuts of a page, `{ key, does, run }`, and answers the line that writes them on it. */
export function pageKeys(shortcuts) {
  page = shortcuts;
  const line = shortcuts.map(({ key, does }) => h("span", {}, h("kbd", {}, key), ` ${does}`));
  const all = h("span", {}, h("kbd", {}, "?"), " every shortcut");
  return h("p", { class: "keys fine", "aria-label": "Shortcuts" }, line, all);
}

/** Forgets them: the page is left. */
export function noPageKeys() {
  page = [];
}

/** Begins to listen; `button` shows all shortcuts. */
export function listen(button) {
  button.addEventListener("click", showAll);
  document.addEventListener("keydown", pressed);
}

function pressed(event) {
  const { key, target } = event;
  if (!isOn || event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  // Whoever is typing means the letter; a dialog has the keys to itself; nothing works before the login.
  if (isTyping(target) || isOpen() || document.getElementById("nav").hidden) return;
  const place = Date.now() - waiting < PAIR_MS && PLACES[key];
  waiting = key === "g" ? Date.now() : 0;
  const shortcut = page.find((each) => each.key === key);
  if (place) location.hash = place[0];
  else if (key === "?") showAll();
  // Held down, a key goes on through a list, but never opens or does a thing twice.
  else if (shortcut && (!event.repeat || "jk".includes(key))) shortcut.run();
  else return;
  event.preventDefault();
}

function isTyping(element) {
  if (element.closest("select, textarea, [contenteditable]")) return true;
  return element.tagName === "INPUT" && !["checkbox", "radio", "button"].includes(element.type);
}

function showAll() {
  const row = (keys, does) => h("div", {}, h("dt", {}, keys), h("dd", {}, does));
  const here = page.map(({ key, does }) => row(h("kbd", {}, key), does));
  const places = Object.entries(PLACES).map(([key, [, name]]) =>
    row([h("kbd", {}, "g"), " ", h("kbd", {}, key)], name),
  );
  const words = h("span", {});
  const button = h("button", { type: "button", on: { click: turn } }, words);
  const tell = () => setText(words, isOn ? "Turn shortcuts off" : "Turn shortcuts on");
  function turn() {
    isOn = !isOn;
    try {
      localStorage.setItem(STORE, isOn ? "on" : "off");
    } catch {
      /* see above */
    }
    tell();
    say(isOn ? "Shortcuts are on" : "Shortcuts are off");
  }
  tell();
  const close = h("button", { type: "button", class: "strong" }, "Close");
  const shown = dialog({
    title: "Shortcuts",
    content: h(
      "div",
      { class: "dialog-form" },
      here.length > 0 && h("h3", {}, "On this page"),
      here.length > 0 && h("dl", { class: "key-list" }, here),
      h("h3", {}, "Everywhere"),
      h("dl", { class: "key-list" }, places, row(h("kbd", {}, "?"), "this list"), row(h("kbd", {}, "Esc"), "close it")),
      h("div", { class: "dialog-acts" }, close, button),
    ),
  });
  close.addEventListener("click", shown.close);
}
