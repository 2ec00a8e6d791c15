// Keys and their quotas, for the administrator: make, revoke, limit.

import { call } from "./api.js";
import { $, h, say, text, twice } from "./dom.js";
import { count, day } from "./format.js";
import { Paced } from "./paced.js";

const PERIODS = { daily: "a day", weekly: "a week", monthly: "a month" };
const PAUSE = 10000; // milliseconds between two looks at what has been used

const path = (key) => `api/keys/${encodeURIComponent(key.id)}`;
const limited = (key) => Object.keys(PERIODS).some((period) => key[`quota_${period}`] !== null);

class Row {
  constructor(key, changed) {
    this.key = key;
    this.changed = changed;
    this.inputs = Object.fromEntries(
      Object.keys(PERIODS).map((period) => [period, h("input", { type: "number", min: "0", step: "1", inputmode: "numeric", placeholder: "no limit", value: key[`quota_${period}`] })]),
    );
    this.used = h("span", { class: "used" });
    this.problem = h("p", { class: "problem", role: "alert" });
    const labels = Object.entries(PERIODS).map(([period, name]) => h("label", {}, `Requests ${name} `, this.inputs[period]));
    const form = h("form", { class: "fields", onsubmit: (event) => this.limit(event) }, ...labels, h("button", {}, "Set quota"));
    this.details = h("details", {}, h("summary", {}, this.used), form, this.problem);
    this.revoke = twice("Revoke", key.name, () => this.end());
    this.element = h(
      "li",
      { "data-id": key.id },
      h("div", { class: "name" }, h("b", {}, key.name), h("code", {}, key.keyPreview), h("span", { class: "muted" }, `since ${day(new Date(key.created_at))}`)),
      this.details,
      this.revoke,
    );
    this.show(key, null);
  }

  show(key, quota) {
    this.key = key;
    this.element.classList.toggle("revoked", key.revoked);
    this.revoke.hidden = key.revoked;
    const parts = Object.entries(PERIODS)
      .filter(([period]) => key[`quota_${period}`] !== null)
      .map(([period, name]) => `${quota ? `${count(quota[period].used)} of ` : ""}${count(key[`quota_${period}`])} ${name}`);
    text(this.used, key.revoked ? "Revoked" : parts.join(" · ") || "No quota");
  }

  async limit(event) {
    event.preventDefault();
    const read = (input) => (input.value === "" ? null : Number(input.value));
    const wanted = Object.fromEntries(Object.entries(this.inputs).map(([period, input]) => [period, read(input)]));
    try {
      await call("PATCH", `${path(this.key)}/quota`, wanted);
      text(this.problem, "");
      this.details.open = false;
      this.details.querySelector("summary").focus();
      say(`The quota of ${this.key.name} is set`);
      this.changed();
    } catch (problem) {
      text(this.problem, problem.message);
    }
  }

  async end() {
    await call("DELETE", path(this.key));
    say(`${this.key.name} is revoked`);
    $("keys-heading").focus();
    this.changed();
  }
}

export class Keys {
  constructor() {
    this.rows = new Map();
    this.paced = new Paced(() => this.load(), PAUSE);
    $("new-key").addEventListener("submit", (event) => this.make(event));
  }

  update(state) {
    const shown = state.you.admin && state.store;
    $("keys-panel").hidden = !shown;
    if (shown) this.paced.note(state.stats.totalRequests, { now: this.rows.size === 0 });
  }

  /** Forget what only the administrator may see. */
  forget() {
    this.paced.forget();
    this.rows.clear();
    $("keys").replaceChildren();
    $("made").replaceChildren();
  }

  async load() {
    try {
      const { keys } = await call("GET", "api/keys");
      keys.sort((one, other) => one.revoked - other.revoked);
      for (const key of keys) {
        const quota = limited(key) && !key.revoked ? (await call("GET", `${path(key)}/quota`)).quota : null;
        if (!this.rows.has(key.id)) this.rows.set(key.id, new Row(key, () => this.load()));
        this.rows.get(key.id).show(key, quota);
      }
      // Only what has come is put in, so that focus stays where it is.
      for (const key of keys) if (!this.rows.get(key.id).element.isConnected) $("keys").append(this.rows.get(key.id).element);
      text($("keys-problem"), "");
    } catch (problem) {
      text($("keys-problem"), problem.message);
    }
  }

  async make(event) {
    event.preventDefault();
    try {
      const { key, name } = await call("POST", "api/keys", { name: $("new-name").value });
      $("new-name").value = "";
      const secret = h("input", { readonly: true, value: key, size: key.length, "aria-label": `Key of ${name}`, onfocus: () => secret.select() });
      const dismiss = h("button", { type: "button", class: "quiet", onclick: () => $("made").replaceChildren() }, "Done");
      $("made").replaceChildren(h("p", {}, `The key of ${name}. Copy it now: it is shown this once.`), h("div", { class: "fields" }, secret, dismiss));
      secret.focus();
      await this.load();
    } catch (problem) {
      text($("keys-problem"), problem.message);
    }
  }
}
