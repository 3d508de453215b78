// Page: one user with counters and lists; without an id, the search alone.

import { Problem, get } from "./api.js";
import { h, once, say } from "./dom.js";
import { count } from "./format.js";
import { pageKeys } from "./keys.js";
import { alertPlace } from "./problem.js";
import { route } from "./router.js";
import { userList } from "./user-list.js";

export const usersPage = { title: "Users", show };

function show(outlet, [userId, view, otherId]) {
  const leaving = new AbortController();
  const alert = alertPlace();
  const body = h("div", {});
  outlet.append(h("div", { class: "page-head" }, h("h1", {}, "Users")), searchForm(alert), alert.element, body);
  outlet.append(pageKeys([{ key: "/", does: "find a user", run: () => document.getElementById("find-user").focus() }]));
  if (!userId) {
    body.append(h("p", { class: "empty" }, "Search for a user by id or by handle. Events and lists link here, too."));
  } else {
    load(userId, view === "common" ? otherId : undefined, body, leaving.signal).catch((error) => {
      if (!leaving.signal.aborted) alert.put(error);
    });
  }
  return () => leaving.abort();
}

async function load(userId, otherId, body, signal) {
  const path = `/v1/users/${encodeURIComponent(userId)}`;
  const [user, counters, other] = await Promise.all([
    get(path, {}, { signal }),
    get(`${path}/counters`, {}, { signal }),
    otherId && get(`/v1/users/${encodeURIComponent(otherId)}`, {}, { signal }),
  ]);
  document.title = `${user.handle} · Tidings`;
  say(`User ${user.handle}`);
  body.append(
    h("div", { class: "person" }, h("h2", {}, user.handle), h("p", {}, "id ", h("code", {}, user.user_id))),
    counterTiles(counters),
    compareForm(user),
  );
  if (other) body.append(commonList(path, user, other, signal));
  body.append(
    h(
      "div",
      { class: "columns" },
      userList({
        title: "Followers",
        id: "followers",
        path: `${path}/followers`,
        total: counters.followers,
        when: "Since",
        signal,
      }),
      userList({
        title: "Following",
        id: "following",
        path: `${path}/following`,
        total: counters.followings,
        when: "Since",
        signal,
      }),
    ),
  );
}

function counterTiles(counters) {
  const named = {
    followers: "Followers",
    followings: "Following",
    posts: "Posts",
    likes_received: "Likes received",
    favorites_received: "Favorites received",
  };
  return h(
    "dl",
    { class: "tiles" },
    Object.entries(named).map(([field, label]) =>
      h("div", { class: "tile" }, h("dt", {}, label), h("dd", { "data-counter": field }, count(counters[field]))),
    ),
  );
}

function commonList(path, user, other, signal) {
  return h(
    "div",
    { class: "common" },
    userList({
      title: `Followed by both ${user.handle} and ${other.handle}`,
      id: "common",
      path: `${path}/following/common`,
      query: { with: other.user_id },
      signal,
    }),
    h("a", { href: route("users", other.user_id) }, `Go to ${other.handle}`),
  );
}

// --- finding

/** The user that digits or a handle mean. Digits are an id first; a handle may be all digits, too. */
async function find(text) {
  if (/^\d+$/.test(text)) {
    try {
      return await get(`/v1/users/${text}`);
    } catch (error) {
      if (!(error instanceof Problem) || error.status !== 404) throw error;
    }
  }
  return get("/v1/users", { handle: text });
}

/** A form of one field that finds a user, then calls `found(user)`. */
function finder({ id, label, name, button, alert, found }) {
  const input = h("input", {
    id,
    type: "search",
    required: true,
    autocomplete: "off",
    autocapitalize: "off",
    spellcheck: "false",
  });
  const submit = h("button", { type: "submit" }, button);
  async function look() {
    alert.put(null);
    try {
      found(await find(input.value.trim()));
    } catch (error) {
      alert.put(error);
      input.focus();
    }
  }
  function onSubmit(event) {
    event.preventDefault();
    once(submit, look);
  }
  return h(
    "form",
    { class: "fields", role: "search", "aria-label": name, on: { submit: onSubmit } },
    h("div", { class: "field" }, h("label", { for: id }, label), input),
    submit,
  );
}

function searchForm(alert) {
  return finder({
    id: "find-user",
    label: "Id or handle",
    name: "Find a user",
    button: "Find",
    alert,
    found: (user) => go(route("users", user.user_id)),
  });
}

function compareForm(user) {
  const alert = alertPlace();
  const form = finder({
    id: "compare-user",
    label: "In common with (id or handle)",
    name: `Follows in common with ${user.handle}`,
    button: "Compare",
    alert,
    found: (other) => go(route("users", user.user_id, "common", other.user_id)),
  });
  return h("div", { class: "compare" }, form, alert.element);
}

// The same address again is no hashchange; the reader asked for a fresh look all the same.
function go(hash) {
  if (location.hash === hash) dispatchEvent(new HashChangeEvent("hashchange"));
  else location.hash = hash;
}
