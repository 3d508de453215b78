// One event: a line that opens to its content.

import { h } from "./dom.js";
import { count, keyText } from "./format.js";
import { jsonBlock } from "./json.js";
import { route } from "./router.js";
import { timeElement } from "./time.js";

/**
 * A closed row; its content is made when it is opened first. `onOpen` is called when it opens. `actions`: controls
 * that stand with its links; `raw`: what is shown as its content where that is not the event.
 */
export function eventRow({ offset, event }, { onOpen, open = false, actions = [], raw = event } = {}) {
  const content = h("div", { class: "event-content" });
  const element = h(
    "details",
    { class: "event", "data-offset": offset, "data-id": event.id, open },
    h(
      "summary",
      { "data-row": true },
      h("span", { class: "event-offset", title: "Offset in the log" }, count(offset)),
      h("span", { class: "event-type", "data-family": event.type.split(".")[0] }, event.type),
      h("span", { class: "event-key" }, h("span", { class: "dim" }, "key "), keyText(event.partitionkey ?? "")),
      h("span", { class: "event-subject" }, event.subject ?? ""),
      timeElement(event.time),
    ),
    content,
  );
  const fill = () => {
    if (content.childElementCount === 0) content.append(...contentOf(event, raw, actions));
  };
  if (open) fill();
  element.addEventListener("toggle", () => {
    if (!element.open) return;
    fill();
    onOpen?.();
  });
  return element;
}

function contentOf(event, raw, actions) {
  const links = event.id ? [journeyLink(event), permalink(event)] : [];
  return [h("div", { class: "event-links" }, peopleOf(event.data), links, copyButton(raw), actions), jsonBlock(raw)];
}

// Ids of users in the payload, as links: the follow graph's events name their two sides so.
function peopleOf(data) {
  const named = ["from", "to", "user_id"].filter((field) => /^\d+$/.test(data?.[field] ?? ""));
  return named.map((field) => h("a", { href: route("users", data[field]) }, `${field} ${data[field]}`));
}

function journeyLink(event) {
  return h("a", { href: route("journey", event.id) }, "Journey");
}

function permalink(event) {
  return h("a", { href: route("events", event.id) }, "Link to this event");
}

function copyButton(event) {
  const button = h("button", { class: "quiet", type: "button" }, "Copy JSON");
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(JSON.stringify(event, null, 2));
      button.textContent = "Copied";
    } catch {
      // Not a secure context, or refused: the text is on the page to be selected.
      button.textContent = "Not allowed here";
    }
  });
  return button;
}
