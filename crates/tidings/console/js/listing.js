// A list that is asked for again and again, a page of it at a time: what is still loading, nothing, a problem and
// the rows each look their own way.

import { h, once, say, setText } from "./dom.js";
import { counted } from "./format.js";
import { poll } from "./poll.js";
import { alertPlace } from "./problem.js";
import { keyedRows } from "./rows.js";

/**
 * `ask(query, signal)` answers `{ items, next_cursor }`; `query` has `limit` and `cursor` where there is a `limit`.
 * `heads`: the columns of a table, numbers being `{ number: "Waiting" }`; without them the rows stand in a plain
 * list. `empty`: what stands there when there is nothing. `noun`: "key", for counts. `onItems(items)` hears each
 * answer. Starts with `start()`, ends with `stop()`; `again()` asks at once, `first()` from the first page on.
 */
export function listing({ label, noun, heads, key, draw, ask, everyMs, limit, empty, onItems }) {
  const alert = alertPlace();
  const loading = h("p", { class: "loading" }, "Loading…");
  const nothing = h("div", { class: "empty", tabindex: "-1", hidden: true }, empty);
  const { element: frame, rows } = heads ? tableFrame(label, heads) : plainFrame(label);
  const turner = pages(label, turn);
  const list = keyedRows(rows, { key, draw });
  const element = h("section", { class: "listing", "aria-label": label }, alert.element, loading, frame, nothing);
  element.append(turner.element);
  let stop = () => {};
  let isLeft = false;
  // Of the page that is being turned to: what is asked for anew, or left, does not wait for it.
  let turning = new AbortController();

  function put({ items, next_cursor }) {
    list.put(items);
    loading.hidden = true;
    nothing.hidden = items.length > 0;
    // The last row went while it had the focus.
    if (items.length === 0 && frame.contains(document.activeElement)) nothing.focus();
    frame.hidden = items.length === 0;
    turner.put(next_cursor ?? null);
    onItems?.(items, turner);
  }

  function failed(problem) {
    alert.put(problem);
    if (problem) loading.hidden = true;
  }

  function again() {
    stop();
    turning.abort();
    // An answer that comes after the page was left begins nothing anew.
    if (isLeft) return;
    const query = () => (limit ? { limit, cursor: turner.cursor } : {});
    stop = poll(everyMs, async (signal) => put(await ask(query(), signal)), failed);
  }

  async function turn() {
    stop();
    turning.abort();
    turning = new AbortController();
    const { signal } = turning;
    try {
      put(await ask({ limit, cursor: turner.cursor }, signal));
      alert.put(null);
      say(`Page ${turner.number}, ${counted(rows.childElementCount, noun)}`);
      (frame.hidden ? turner.element.querySelector("button:not([hidden])") : frame)?.focus();
    } catch (error) {
      if (signal.aborted) return;
      alert.put(error);
    }
    again();
  }

  function step(by) {
    const links = [...rows.querySelectorAll("[data-row]")];
    const at = links.findIndex((link) => link.closest("tr, li")?.contains(document.activeElement));
    links[at < 0 ? (by > 0 ? 0 : links.length - 1) : Math.min(Math.max(at + by, 0), links.length - 1)]?.focus();
  }

  return {
    element,
    start: again,
    again,
    stop() {
      isLeft = true;
      stop();
      turning.abort();
    },
    first() {
      turner.reset();
      again();
    },
    keys: [
      { key: "j", does: `next ${noun}`, run: () => step(1) },
      { key: "k", does: `previous ${noun}`, run: () => step(-1) },
      ...(limit ? turner.keys : []),
    ],
  };
}

function tableFrame(label, heads) {
  const cells = heads.map((head) =>
    h("th", { scope: "col", class: head.number !== undefined && "number" }, head.number ?? head),
  );
  const rows = h("tbody", {});
  // Focusable, so that a keyboard can scroll it sideways on a narrow screen.
  const props = { class: "scroll", tabindex: "0", role: "region", "aria-label": label, hidden: true };
  return { element: h("div", props, h("table", {}, h("thead", {}, h("tr", {}, cells)), rows)), rows };
}

function plainFrame(label) {
  const rows = h("ol", { class: "cards", "aria-label": label });
  return { element: h("div", { class: "plain", tabindex: "-1", hidden: true }, rows), rows };
}

// Back is a stack: a cursor leads forward only.
function pages(label, turn) {
  let cursors = [undefined];
  let following = null;
  const text = h("span", { class: "fine" });
  const button = (name, go) => h("button", { type: "button", on: { click: go } }, name);
  const previous = button("Previous page", () => once(previous, back));
  const next = button("Next page", () => once(next, on));
  const element = h("nav", { class: "pager", "aria-label": `Pages: ${label}`, hidden: true }, previous, next, text);

  async function on() {
    if (!following) return;
    cursors.push(following);
    await turn();
  }
  async function back() {
    if (cursors.length === 1) return;
    cursors.pop();
    await turn();
  }

  return {
    element,
    get cursor() {
      return cursors.at(-1);
    },
    get number() {
      return cursors.length;
    },
    get isWhole() {
      return cursors.length === 1 && !following;
    },
    put(cursor) {
      following = cursor;
      next.hidden = !following;
      previous.hidden = cursors.length === 1;
      element.hidden = next.hidden && previous.hidden;
      setText(text, `Page ${cursors.length}`);
    },
    reset() {
      cursors = [undefined];
    },
    keys: [
      { key: "n", does: "next page", run: () => once(next, on) },
      { key: "p", does: "previous page", run: () => once(previous, back) },
    ],
  };
}
