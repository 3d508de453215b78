// The console's start: who is there? Then the login or the pages.

import { Problem, Unreachable, answersWithin, get, remove, session } from "./api.js";
import { auditPage } from "./audit.js";
import * as connection from "./connection.js";
import { eventsPage } from "./events.js";
import { flowPage } from "./flow.js";
import { journeyPage } from "./journey.js";
import { listen } from "./keys.js";
import { showLogin } from "./login.js";
import { parkedPage } from "./parked.js";
import { rebuildsPage } from "./rebuilds.js";
import { reconciliationPage } from "./reconciliation.js";
import { start } from "./router.js";
import { usersPage } from "./user.js";

const pages = {
  flow: flowPage,
  events: eventsPage,
  journey: journeyPage,
  users: usersPage,
  parked: parkedPage,
  rebuilds: rebuildsPage,
  reconciliation: reconciliationPage,
  audit: auditPage,
};
const outlet = document.getElementById("main");
let leave = () => {};

function showPages() {
  leave();
  chrome(true);
  leave = start(outlet, pages);
}

function showLoggedOut(reason) {
  leave();
  chrome(false);
  document.title = "Log in · Tidings";
  leave = showLogin(outlet, { reason, onDone: open });
}

// The frame around the pages: only for someone who is logged in.
function chrome(loggedIn) {
  for (const id of ["nav", "link-state", "keys", "logout"]) document.getElementById(id).hidden = !loggedIn;
}

async function logOut() {
  try {
    await remove("/console/session", { quiet401: true });
  } catch (error) {
    // Without an answer the cookie still stands: say so rather than pretend.
    if (error instanceof Unreachable) return;
    if (!(error instanceof Problem)) throw error;
  }
  showLoggedOut("You are logged out.");
}

/** The secret of a one-time link, taken out of the address at once: no history, no second use. */
function takeLink() {
  const link = location.pathname === "/login" ? new URLSearchParams(location.search).get("link") : null;
  if (location.pathname !== "/") history.replaceState(null, "", `/${location.hash}`);
  return link;
}

async function open() {
  const link = takeLink();
  if (link) {
    chrome(false);
    document.title = "Log in · Tidings";
    leave = showLogin(outlet, { link, onDone: open });
    return;
  }
  try {
    const { request_timeout_ms } = await get("/console/session", {}, { quiet401: true });
    answersWithin(request_timeout_ms);
    showPages();
  } catch (error) {
    if (error instanceof Unreachable) {
      connection.connection.addEventListener("found", open, { once: true });
    } else if (error instanceof Problem && error.status === 401) {
      showLoggedOut();
    } else {
      throw error;
    }
  }
}

session.addEventListener("lost", () => showLoggedOut("Your session has ended. Log in again."));
document.getElementById("logout").addEventListener("click", logOut);
document.getElementById("skip").addEventListener("click", (event) => {
  // The fragment is the router's, so the link's work is done by hand.
  event.preventDefault();
  outlet.focus();
});
listen(document.getElementById("keys"));
connection.show();
open();
