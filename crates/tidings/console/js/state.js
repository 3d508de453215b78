// A state as a coloured mark and its word.

import { h } from "./dom.js";

/** `words`: where the state's own name, with spaces, is not what people read. */
export function stateMark(state, words = state.replaceAll("_", " ")) {
  return h("span", { class: "state", "data-state": state }, h("i", { "aria-hidden": "true" }), words);
}
