// Requests to the service. A token lives in this module's memory and nowhere else: it is gone with the tab.

const BASE = new URL("api/v1/", document.baseURI.replace(/[#?].*$/, ""));
let token = null;
let moment = 0; // the last event that an answer has told of

export class Refusal extends Error {
  constructor(status, kind, message) {
    super(message);
    this.status = status;
    this.kind = kind;
  }
}

export function setToken(given) {
  token = given || null;
}

export function onToken(wanted) {
  addEventListener("partita:token", wanted);
  return () => removeEventListener("partita:token", wanted);
}

export function address(path, params = {}) {
  const url = new URL(path, BASE);
  for (const [name, given] of Object.entries(params)) {
    for (const value of [].concat(given)) {
      if (value !== null && value !== undefined && value !== "") url.searchParams.append(name, value);
    }
  }
  return url;
}

// The number of the last event that is known of here.
export const latest = () => moment;

export const part = encodeURIComponent; // of a path: ids may hold anything

// The answer to a request; a Refusal with the service's own words if there is none.
export async function ask(path, params = {}, { signal, accept = "application/json", headers = {} } = {}) {
  return json(await send(address(path, params), { signal, headers: { Accept: accept, ...headers } }));
}

export async function tell(path, body) {
  const headers = { "Content-Type": "application/json", Accept: "application/json" };
  return json(await send(address(path), { method: "POST", headers, body: JSON.stringify(body) }));
}

export async function send(url, options) {
  const headers = { ...options.headers };
  if (token) headers.Authorization = `Bearer ${token}`;
  let response;
  try {
    response = await fetch(url, { ...options, headers, credentials: "omit", cache: "no-store" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refusal(0, "unreachable", "The service does not answer. Is it still running?");
  }
  if (!response.ok) throw await refusal(response);
  moment = Math.max(moment, Number(response.headers.get("Partita-Event")) || 0);
  return response;
}

async function refusal(response) {
  let said = null;
  try {
    said = (await response.json()).error;
  } catch {
    // What refused may not be the service: a proxy, say.
  }
  if (response.status === 401) dispatchEvent(new Event("partita:token"));
  return new Refusal(response.status, said?.kind || "failed", said?.message || `The service says ${response.status}.`);
}

const json = (response) => response.json();

// Save what the service exports. A link could not carry the token.
export async function save(params, fallback) {
  const response = await send(address("export", params), { headers: {} });
  const named = /filename="?([^";]+)"?/.exec(response.headers.get("Content-Disposition") || "");
  const link = document.createElement("a");
  link.href = URL.createObjectURL(await response.blob());
  link.download = named ? named[1] : fallback;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  return link.download;
}

// ---------------------------------------------------------------------- who answers

const NAME = "partita.user";

export function user() {
  try {
    return sessionStorage.getItem(NAME) || "";
  } catch {
    return "";
  }
}

export function setUser(name) {
  try {
    if (name) sessionStorage.setItem(NAME, name);
    else sessionStorage.removeItem(NAME);
  } catch {
    // Without storage the name is asked for again in the next tab.
  }
}

// Without a name it is that of the token, or it is the page's.
export const signedBy = () => (user() ? { user: user() } : token ? {} : { user: "page" });
