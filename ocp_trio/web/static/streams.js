// The streams that run: one row each, which is changed in place so that focus and selection stay where they are.

import { call } from "./api.js";
import { $, h, say, svg, text, twice } from "./dom.js";
import { clock, count } from "./format.js";

const COLUMNS = 60;
const LINGER = 5000; // milliseconds that a row stays after its end, so that the others do not jump

class Row {
  constructor(stream) {
    this.columns = [];
    this.seen = { deltas: stream.deltas, heartbeats: stream.heartbeats };
    this.parts = Object.fromEntries(["age", "silence", "deltas", "beats"].map((name) => [name, h("span")]));
    this.state = h("span", { class: "state" });
    this.bars = svg("path", { class: "bars" });
    this.beats = svg("path", { class: "beats" });
    const strip = svg("svg", { viewBox: `0 0 ${COLUMNS * 4} 28`, preserveAspectRatio: "none", "aria-hidden": "true" }, this.bars, this.beats);
    const whose = stream.key === null ? null : h("span", { class: "owner" }, stream.key);
    const name = stream.key === null ? stream.model : `${stream.model} of ${stream.key}`;
    this.cancel = twice("Cancel", name, () => call("DELETE", `v1/requests/${encodeURIComponent(stream.id)}`));
    const value = (label, element) => h("div", { class: "value" }, h("span", { class: "label" }, label), element);
    this.element = h(
      "li",
      { "data-id": stream.id },
      h("div", { class: "name" }, h("span", { class: "dot", "aria-hidden": "true" }), h("span", { class: "model" }, stream.model), whose, this.state),
      h("div", { class: "strip" }, strip),
      value("age", this.parts.age),
      value("silent", this.parts.silence),
      value("deltas", this.parts.deltas),
      value("heartbeats", this.parts.beats),
      this.cancel,
    );
    this.update(stream);
  }

  update(stream) {
    this.stream = stream;
    this.element.dataset.state = stream.state;
    text(this.state, stream.state === "queued" ? "waits for its turn" : "");
    text(this.parts.deltas, count(stream.deltas));
    text(this.parts.beats, count(stream.heartbeats));
  }

  /** Count time on: once a second. */
  tick(now) {
    const { arrived, lastLife, deltas, heartbeats } = this.stream;
    const silent = now - (lastLife ?? arrived);
    text(this.parts.age, clock(now - arrived));
    text(this.parts.silence, clock(silent));
    this.element.dataset.silent = silent >= 10 ? "long" : "";
    this.columns.push({ deltas: deltas - this.seen.deltas, beats: heartbeats - this.seen.heartbeats });
    this.columns.splice(0, this.columns.length - COLUMNS);
    this.seen = { deltas, heartbeats };
    const from = COLUMNS - this.columns.length;
    const at = (index) => (from + index) * 4 + 2;
    // Logarithmic: one delta is seen beside a hundred.
    const high = (number) => Math.min(25, 3 + 3.4 * Math.log2(1 + number)).toFixed(1);
    const draw = (path) => this.columns.map(path).join("");
    this.bars.setAttribute("d", draw((column, index) => (column.deltas > 0 ? `M${at(index)} 27v-${high(column.deltas)}` : "")));
    this.beats.setAttribute("d", draw((column, index) => (column.beats > 0 ? `M${at(index)} 24h0` : "")));
  }

  /** Show how it ended. */
  end(outcome) {
    this.element.dataset.state = "ended";
    this.element.dataset.outcome = outcome;
    text(this.state, { ok: "complete", cancelled: "cancelled", gone: "ended" }[outcome] ?? `failed: ${outcome}`);
    this.cancel.hidden = true;
  }
}

export class Streams {
  constructor() {
    this.rows = new Map();
    this.list = $("running");
  }

  update({ running, ended }, now) {
    const left = new Set(this.rows.keys());
    for (const stream of running) {
      left.delete(stream.id);
      if (this.rows.has(stream.id)) this.rows.get(stream.id).update(stream);
      else this.add(stream, now);
    }
    for (const id of left) this.remove(id, ended.find((each) => each.id === id)?.outcome ?? "gone");
    text($("streams"), running.length ? `Live streams (${running.length})` : "Live streams");
    this.showEmpty();
  }

  add(stream, now) {
    const row = new Row(stream);
    this.rows.set(stream.id, row);
    this.list.append(row.element);
    row.tick(now);
  }

  remove(id, outcome) {
    const row = this.rows.get(id);
    this.rows.delete(id);
    if (row.element.contains(document.activeElement)) {
      const next = row.element.nextElementSibling ?? row.element.previousElementSibling;
      (next?.querySelector("button:not([hidden])") ?? $("streams")).focus();
    }
    row.end(outcome);
    say(`${row.stream.model}: ${row.state.textContent}`);
    setTimeout(() => {
      row.element.remove();
      this.showEmpty();
    }, LINGER);
  }

  tick(now) {
    for (const row of this.rows.values()) row.tick(now);
  }

  showEmpty() {
    $("nothing").hidden = this.list.childElementCount > 0;
  }
}

/** The failed among those that have ended, the newest first. */
export function showErrors(ended, wallTime) {
  const failed = ended.filter((each) => each.message !== null).reverse();
  const ids = failed.map((each) => each.id).join();
  $("no-errors").hidden = failed.length > 0;
  if ($("errors").dataset.ids === ids) return;
  $("errors").dataset.ids = ids;
  $("errors").replaceChildren(
    ...failed.map((each) =>
      h(
        "li",
        {},
        h("time", {}, wallTime(each.at)),
        h("code", {}, each.outcome),
        h("span", { class: "message" }, each.message),
        h("span", { class: "muted" }, [each.model, each.key, `after ${each.seconds < 10 ? `${each.seconds.toFixed(1)} s` : clock(each.seconds)}`].filter(Boolean).join(" · ")),
      ),
    ),
  );
}
