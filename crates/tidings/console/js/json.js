// JSON as formatted, coloured text: spans made from the value, never markup from text.

import { h } from "./dom.js";

const INDENT = "  ";

/** A <pre> of the value; `label` says what it is. */
export function jsonBlock(value, label = "Event content") {
  const parts = [];
  write(value, "", parts);
  // Focusable, because a long line scrolls sideways and a keyboard has to be able to.
  return h("pre", { class: "json", tabindex: "0", role: "region", "aria-label": label }, h("code", {}, parts));
}

function write(value, indent, parts) {
  if (Array.isArray(value)) {
    group("[", "]", value, indent, parts, (item, inner) => write(item, inner, parts));
  } else if (value !== null && typeof value === "object") {
    group("{", "}", Object.entries(value), indent, parts, ([key, item], inner) => {
      parts.push(h("span", { class: "json-key" }, JSON.stringify(key)), ": ");
      write(item, inner, parts);
    });
  } else {
    parts.push(h("span", { class: `json-${value === null ? "null" : typeof value}` }, JSON.stringify(value)));
  }
}

function group(open, close, items, indent, parts, writeItem) {
  if (items.length === 0) {
    parts.push(open + close);
    return;
  }
  const inner = indent + INDENT;
  items.forEach((item, i) => {
    parts.push(`${i === 0 ? open : ","}\n${inner}`);
    writeItem(item, inner);
  });
  parts.push(`\n${indent}${close}`);
}
