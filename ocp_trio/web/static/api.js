// Call the server's endpoints, with the key of this tab where there is one. No secret is ever part of a URL.

const NAME = "ocp-trio-key";

/** The key that this tab has signed in with; it is forgotten when the tab is closed. */
export const session = {
  get key() {
    return sessionStorage.getItem(NAME);
  },
  set key(key) {
    if (key) sessionStorage.setItem(NAME, key);
    else sessionStorage.removeItem(NAME);
  },
};

/** What the server refused, and why. */
export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/** Send a request; the response is one of success. */
export async function send(method, path, { body, signal } = {}) {
  const headers = session.key ? { authorization: `Bearer ${session.key}` } : {};
  if (body !== undefined) headers["content-type"] = "application/json";
  const response = await fetch(path, {
    method,
    headers,
    signal,
    body: body === undefined ? undefined : JSON.stringify(body),
    cache: "no-store",
    credentials: "omit",
    redirect: "error",
  });
  if (response.ok) return response;
  const told = await response.json().catch(() => null);
  throw new Refused(response.status, told?.error?.message ?? `the server answered with status ${response.status}`);
}

/** Send a request and read the JSON of its answer. */
export async function call(method, path, body) {
  const response = await send(method, path, { body });
  return response.json();
}
