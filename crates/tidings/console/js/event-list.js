// The list of events, newest first, kept whole: what is between two rows is either there or said
// to be missing.

import { h, say, setText } from "./dom.js";
import { eventRow } from "./event-row.js";
import { count, counted } from "./format.js";

// While live, the list keeps this many rows; paging back may go as far as the reader likes.
const LIVE_MAX = 100;

/** Rows of events, and of gaps, whose `offset` is null. */
export class EventList {
  element;
  #rows = h("ol", { class: "events" });
  #note = h("p", { class: "fine list-note" });
  #empty = h("p", { class: "empty", hidden: true }, "No event yet. The first follow will appear here.");
  // Newest first: { offset, event, element }.
  #items = [];
  #types = new Set();
  #wanted = { type: "", key: "" };
  #onOpen;
  #onType;

  /** `onOpen()`: a row was opened. `onType(name)`: an event type was seen first. */
  constructor({ onOpen, onType }) {
    this.#onOpen = onOpen;
    this.#onType = onType;
    const label = { class: "event-list", "aria-label": "Events, newest first" };
    this.element = h("section", label, this.#note, this.#rows, this.#empty);
  }

  /** How many events are here. */
  get size() {
    return this.#items.filter((item) => item.offset !== null).length;
  }

  /** The offset of the oldest event here; undefined when there is none. */
  get oldest() {
    return this.#items.findLast((item) => item.offset !== null)?.offset;
  }

  /** Takes the newest events of the log, ascending. */
  addNewest(ascending) {
    const newest = this.#items.find((item) => item.offset !== null)?.offset ?? -1;
    const fresh = ascending.filter((item) => item.offset > newest);
    const missing = (fresh[0]?.offset ?? 0) - newest - 1;
    // More was committed between two polls than one answer holds. Nothing is lost: it is in the log.
    if (this.#items.length > 0 && missing > 0) this.#putFirst(gap(missing));
    for (const item of fresh) this.#putFirst(this.#made(item));
    if (fresh.length > 0) this.trim();
    this.#tell();
  }

  /** Takes the page just below the oldest row, ascending. */
  addOlder(ascending) {
    for (const raw of ascending.toReversed()) {
      const item = this.#made(raw);
      this.#items.push(item);
      this.#rows.append(item.element);
    }
    this.#tell();
  }

  /** Shows the events of one type and key alone; empty for all. Gaps stay: they are true in any view. */
  filter(wanted) {
    this.#wanted = wanted;
    for (const item of this.#items) item.element.hidden = item.offset !== null && !this.#fits(item);
    this.#tell();
    say(this.#note.textContent);
  }

  /** Cuts the list to what is kept while live. */
  trim() {
    for (const item of this.#items.splice(LIVE_MAX)) item.element.remove();
  }

  #putFirst(item) {
    this.#items.unshift(item);
    this.#rows.prepend(item.element);
  }

  #made({ offset, event }) {
    if (!this.#types.has(event.type)) {
      this.#types.add(event.type);
      this.#onType(event.type);
    }
    const item = { offset, event, element: h("li", {}, eventRow({ offset, event }, { onOpen: this.#onOpen })) };
    item.element.hidden = !this.#fits(item);
    return item;
  }

  #fits({ event }) {
    const { type, key } = this.#wanted;
    return (!type || event.type === type) && (!key || event.partitionkey === key);
  }

  // The log is not indexed by type or key: the filter narrows what is loaded, and says so.
  #tell() {
    const events = this.#items.filter((item) => item.offset !== null);
    const shown = events.filter((item) => !item.element.hidden).length;
    const filtered = this.#wanted.type || this.#wanted.key;
    const text = `${count(shown)} of the ${counted(events.length, "event")} loaded here fit the filter.`;
    setText(this.#note, filtered ? text : "");
    this.#empty.hidden = events.length > 0;
  }
}

function gap(missing) {
  return { offset: null, element: h("li", { class: "gap" }, `${counted(missing, "more event")} between these two`) };
}
