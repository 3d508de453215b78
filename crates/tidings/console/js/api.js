// Every request of the console goes through here, so that a lost session, a lost server and a
// problem document are each recognised in one place.

import * as connection from "./connection.js";

// A server that does not answer by then is as good as not there. It has its own limit, after which it says that
// something took too long: here is waited for that.
const PATIENCE_MS = 5_000;
let serverMs = 10_000;

/** Hears how long the server takes at most for one request. */
export function answersWithin(ms) {
  serverMs = ms;
}

/** The server answered with a problem document (RFC 9457), or with a status that is one in spirit. */
export class Problem extends Error {
  constructor(status, document, requestId) {
    super(document.detail ?? document.title ?? `Status ${status}`);
    this.status = status;
    this.kind = document.type ?? "";
    this.title = document.title ?? `The server answered ${status}`;
    this.detail = document.detail ?? "";
    this.fields = Array.isArray(document.errors) ? document.errors : [];
    this.requestId = document.request_id ?? requestId ?? "";
  }
}

/** No answer at all: the server is down, restarting, or the network is. */
export class Unreachable extends Error {}

/** Heard once per lost session; app.js shows the login. */
export const session = new EventTarget();

/** GET of a JSON document. `query` values that are empty are left out, but for those that `keeps` names. */
export function get(path, query = {}, { keeps = [], ...options } = {}) {
  const isGiven = ([name, value]) => value !== undefined && value !== null && (value !== "" || keeps.includes(name));
  const filled = Object.entries(query).filter(isGiven);
  const text = new URLSearchParams(filled).toString();
  return request("GET", text ? `${path}?${text}` : path, undefined, options);
}

/** POST of a JSON document. */
export function post(path, body, options) {
  return request("POST", path, body, options);
}

/** DELETE. */
export function remove(path, options) {
  return request("DELETE", path, undefined, options);
}

/**
 * `quiet401`: a 401 is this caller's own answer (the login form), not the end of a session.
 * `signal`: aborts the request when its page is left; the abort error is passed on as it is.
 * `key`: the same request with the same key is done once, and answered as it was the first time.
 */
async function request(method, path, body, { quiet401 = false, signal, key } = {}) {
  const headers = { accept: "application/json, application/problem+json" };
  // The cookie alone changes nothing: a foreign page can send a cookie, but not this header.
  if (method !== "GET") headers["x-tidings-console"] = "1";
  if (key !== undefined) headers["idempotency-key"] = key;
  if (body !== undefined) headers["content-type"] = "application/json";
  const timeout = AbortSignal.timeout(serverMs + PATIENCE_MS);

  let response;
  let text;
  try {
    response = await fetch(path, {
      method,
      headers,
      body: body === undefined ? undefined : JSON.stringify(body),
      cache: "no-store",
      credentials: "same-origin",
      signal: signal ? AbortSignal.any([signal, timeout]) : timeout,
    });
    text = await response.text();
  } catch (error) {
    if (signal?.aborted) throw error;
    connection.lost();
    throw new Unreachable("The server is not reachable.", { cause: error });
  }
  connection.found();
  if (response.ok) return text ? JSON.parse(text) : null;

  if (response.status === 401 && !quiet401) session.dispatchEvent(new Event("lost"));
  throw new Problem(response.status, problemDocument(text), response.headers.get("x-request-id"));
}

// A proxy in between may answer with HTML; its status still says enough.
function problemDocument(text) {
  try {
    return JSON.parse(text) ?? {};
  } catch {
    return {};
  }
}
