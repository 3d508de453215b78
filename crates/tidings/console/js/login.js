// The logged-out state: an admin token, or a one-time link that brought the visitor here.

import { Problem, post } from "./api.js";
import { h, once, say } from "./dom.js";
import { alertPlace } from "./problem.js";

/**
 * Shows the login. `reason`: why the visitor is here, if he was somewhere else before. `link`: the
 * secret of a one-time link, spent at once. `onDone`: called when a session stands.
 */
export function showLogin(outlet, { reason, link, onDone }) {
  const alert = alertPlace();
  const token = h("input", {
    id: "token",
    name: "token",
    type: "password",
    required: true,
    autocomplete: "off",
    spellcheck: "false",
    "aria-describedby": "token-help",
  });
  const button = h("button", { class: "strong", type: "submit" }, "Log in");
  const form = h(
    "form",
    { class: "login-form", on: { submit } },
    h("label", { for: "token" }, "Admin token"),
    token,
    h(
      "p",
      { class: "fine", id: "token-help" },
      "It is kept in no storage of this browser; the session is a cookie that scripts cannot read.",
    ),
    button,
  );
  const heading = h("h1", { tabindex: "-1" }, "Log in");
  const reasonLine = reason && h("p", { class: "login-reason", role: "status" }, reason);

  async function enter(body, busyText) {
    alert.put(null);
    say(busyText);
    try {
      await post("/console/session", body, { quiet401: true });
      say("Logged in");
      onDone();
    } catch (error) {
      alert.put(error instanceof Problem && error.status === 401 ? explain401(error, body) : error);
      token.focus();
    }
  }

  function submit(event) {
    event.preventDefault();
    once(button, () => enter({ token: token.value.trim() }, "Logging in"));
  }

  outlet.replaceChildren(h("section", { class: "login" }, heading, reasonLine, alert.element, form, ways()));
  if (link) once(button, () => enter({ link }, "Logging in with the one-time link"));
  else token.focus();
  return () => {};
}

// "Unauthenticated" is true and of no help; what to do differs by what was tried.
function explain401(error, body) {
  const document = body.link
    ? { title: "This link does not work", detail: "A one-time link works once, and for a short time. Make a new one." }
    : { title: "This token does not work", detail: "It has to be an admin token of this server that has not expired." };
  return new Problem(401, { ...document, request_id: error.requestId });
}

function ways() {
  return h(
    "div",
    { class: "login-ways" },
    h("h2", {}, "There is no default password"),
    h("p", {}, "Whoever may read the server's data folder may log in. On the server's machine, run one of:"),
    h(
      "dl",
      {},
      h("dt", {}, h("code", {}, "tidings login-link")),
      h("dd", {}, "prints a link that opens this console once. The first start of a server prints one, too."),
      h("dt", {}, h("code", {}, "tidings token --admin")),
      h("dd", {}, "prints an admin token to paste above; the same token works for the HTTP API."),
    ),
    h(
      "p",
      {},
      "Both take ",
      h("code", {}, "--data DIR"),
      " where the data is not in ",
      h("code", {}, "./tidings-data"),
      ".",
    ),
  );
}
