// How a failure looks: what happened, why, which field, and the request id to look for in the log.

import { Problem, Unreachable } from "./api.js";
import { h } from "./dom.js";

/** An alert for a failed request. Errors that are not the server's are thrown on: they are bugs. */
export function problemAlert(error) {
  if (error instanceof Unreachable) {
    return h("div", { class: "alert", role: "alert" }, h("strong", {}, "The server is not reachable."), " Try again.");
  }
  if (!(error instanceof Problem)) throw error;
  return h(
    "div",
    { class: "alert", role: "alert" },
    h("strong", {}, error.title),
    error.detail && h("p", {}, error.detail),
    error.fields.length > 0 &&
      h(
        "ul",
        {},
        error.fields.map((field) => h("li", {}, h("code", {}, field.field), ` ${field.detail}`)),
      ),
    error.requestId && h("p", { class: "fine" }, "Request ", h("code", {}, error.requestId)),
  );
}

/** A place for alerts: `put(error)` shows one, `put(null)` clears it. */
export function alertPlace() {
  const element = h("div", { class: "alert-place" });
  let shown = "";
  return {
    element,
    put(error) {
      // Polling gets the same answer again and again; it is an alert once.
      const same = error ? JSON.stringify([error.message, error.status, error.fields]) : "";
      if (same && same === shown) return;
      shown = same;
      element.replaceChildren(...(error ? [problemAlert(error)] : []));
    },
  };
}
