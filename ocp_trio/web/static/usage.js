// Requests and tokens over time, by model or by key: stacked bars, and the same numbers as a table.

import { call } from "./api.js";
import { $, h, svg } from "./dom.js";
import { compact, count, day, hour } from "./format.js";
import { Paced } from "./paced.js";

const CHOICES = {
  measure: { legend: "Measure", options: { requests: "Requests", tokensOut: "Tokens out", tokensIn: "Tokens in" } },
  by: { legend: "Grouped by", options: { model: "Model", key_name: "Key" } },
  range: { legend: "Time", options: { 24: "24 hours", 168: "7 days", 720: "30 days" } },
};
const MEASURES = {
  requests: (point) => point.requests,
  tokensOut: (point) => point.tokens_out,
  tokensIn: (point) => point.tokens_in + point.cache_read + point.cache_write,
};
const COLOURS = 6; // and one for all others
const HEIGHT = 190;
const MARGIN = { left: 44, bottom: 22, top: 8 };
const PAUSE = 10000; // milliseconds between two questions that nobody has asked for

const NO_STORE = "Usage is kept where there is a store: set OCP_STORE to a path, or CLAUDE_AUTH_MODE=multi.";

export class Usage {
  constructor() {
    this.choice = { measure: "requests", by: "model", range: "24" };
    this.points = null;
    this.paced = new Paced(() => this.load(), PAUSE);
    this.whose = null;
    for (const [name, { legend, options }] of Object.entries(CHOICES)) $("usage-choices").append(this.group(name, legend, options));
    new ResizeObserver(() => this.show()).observe($("usage"));
  }

  group(name, legend, options) {
    const radios = Object.entries(options).map(([value, label]) => {
      const input = h("input", { type: "radio", name, value, checked: this.choice[name] === value });
      input.addEventListener("change", () => {
        this.choice[name] = value;
        if (name === "range") this.load();
        else this.show();
      });
      return h("label", {}, input, h("span", {}, label));
    });
    return h("fieldset", { class: "choice", "data-choice": name }, h("legend", { class: "unseen" }, legend), ...radios);
  }

  update(state) {
    this.all = state.you.admin || state.authMode === "none";
    if (!state.store) return this.explain(NO_STORE);
    const whose = JSON.stringify(state.you);
    const now = whose !== this.whose;
    if (now) this.explain("");
    this.whose = whose;
    this.paced.note(`${whose} ${state.stats.totalRequests - state.stats.activeRequests}`, { now });
  }

  explain(sentence) {
    this.points = null;
    $("usage-choices").hidden = true;
    $("usage").replaceChildren(h("p", { class: "empty" }, sentence));
  }

  async load() {
    try {
      const query = new URLSearchParams({ series: "true", limit: "0", hours: this.choice.range, all: String(this.all) });
      this.points = (await call("GET", `api/usage?${query}`)).series;
      $("usage-choices").hidden = false;
      this.show();
    } catch (problem) {
      this.explain(problem.status === 403 ? "The administrator sees here what is used." : problem.message);
    }
  }

  /** Sort the points into columns of time and rows of names, the largest first. */
  table() {
    const hours = Number(this.choice.range);
    const daily = hours > 24;
    const value = MEASURES[this.choice.measure];
    const columns = [];
    const start = new Date();
    if (daily) start.setHours(0, 0, 0, 0);
    else start.setMinutes(0, 0, 0);
    const number = daily ? hours / 24 : hours;
    for (let back = number - 1; back >= 0; back--) {
      const when = new Date(start);
      if (daily) when.setDate(when.getDate() - back);
      else when.setHours(when.getHours() - back);
      columns.push({ when, label: daily ? day(when) : hour(when), values: new Map(), sum: 0 });
    }
    const totals = new Map();
    for (const point of this.points) {
      const when = new Date(point.hour);
      const column = columns.findLast((each) => each.when <= when);
      const amount = value(point);
      if (!column || !amount) continue;
      const name = point[this.choice.by] ?? "no key";
      column.values.set(name, (column.values.get(name) ?? 0) + amount);
      column.sum += amount;
      totals.set(name, (totals.get(name) ?? 0) + amount);
    }
    return { columns, rows: [...totals].sort((one, other) => other[1] - one[1]) };
  }

  show() {
    if (this.points === null || !$("usage").clientWidth) return;
    const { columns, rows } = this.table();
    const options = (name) => CHOICES[name].options[this.choice[name]];
    const what = `${options("measure")} by ${options("by").toLowerCase()}, last ${options("range")}`;
    const sum = rows.reduce((all, [, number]) => all + number, 0);
    const shown = rows.slice(0, COLOURS);
    const others = rows.slice(COLOURS).reduce((all, [, number]) => all + number, 0);
    const legend = [...shown, ...(others ? [["others", others]] : [])];
    $("usage").replaceChildren(
      this.chart(columns, shown.map(([name]) => name), `${what}: ${count(sum)} in all`),
      h("ul", { class: "series" }, ...legend.map(([name, number], index) => h("li", {}, h("i", { class: `s${index}`, "aria-hidden": "true" }), h("span", {}, name), h("b", {}, compact(number))))),
      this.asTable(columns, rows.map(([name]) => name), what),
    );
  }

  chart(columns, names, label) {
    const width = $("usage").clientWidth;
    const most = Math.max(1, ...columns.map((column) => column.sum));
    const { step, top } = scale(most);
    const y = (number) => MARGIN.top + (HEIGHT - MARGIN.top - MARGIN.bottom) * (1 - number / top);
    const each = (width - MARGIN.left) / columns.length;
    const lines = [];
    for (let number = 0; number <= top; number += step) {
      lines.push(svg("path", { class: "grid", d: `M${MARGIN.left} ${y(number).toFixed(1)}H${width}` }));
      lines.push(svg("text", { x: MARGIN.left - 8, y: y(number) + 4, "text-anchor": "end" }, compact(number)));
    }
    const every = Math.ceil(54 / each);
    const bars = columns.map((column, index) => {
      const x = MARGIN.left + index * each;
      let from = 0;
      const parts = [];
      const part = (name, amount, place) => {
        if (!amount) return;
        parts.push(svg("rect", { class: `s${place}`, x: (x + each * 0.14).toFixed(1), width: (each * 0.72).toFixed(1), y: y(from + amount).toFixed(1), height: Math.max(1, y(from) - y(from + amount)).toFixed(1) }, svg("title", {}, `${column.label}, ${name}: ${count(amount)}`)));
        from += amount;
      };
      names.forEach((name, place) => part(name, column.values.get(name), place));
      part("others", column.sum - from, COLOURS);
      const last = columns.length - 1 - index;
      const place = last === 0 && each < 44 ? { x: width, "text-anchor": "end" } : { x: x + each / 2, "text-anchor": "middle" };
      const tick = last % every === 0 ? svg("text", { ...place, y: HEIGHT - 5 }, column.label) : null;
      return svg("g", {}, ...parts, ...(tick ? [tick] : []));
    });
    return svg("svg", { class: "chart", role: "img", "aria-label": label, viewBox: `0 0 ${width} ${HEIGHT}`, width, height: HEIGHT }, ...lines, ...bars);
  }

  asTable(columns, names, what) {
    const open = $("usage").querySelector("details")?.open ?? false;
    const row = (column) => h("tr", {}, h("th", { scope: "row" }, column.label), ...names.map((name) => h("td", {}, count(column.values.get(name) ?? 0))));
    const head = h("tr", {}, h("th", { scope: "col" }, "from"), ...names.map((name) => h("th", { scope: "col" }, name)));
    const table = h("table", {}, h("caption", { class: "unseen" }, what), h("thead", {}, head), h("tbody", {}, ...columns.filter((column) => column.sum).map(row)));
    const box = h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": `${what}, as a table` }, names.length ? table : h("p", { class: "empty" }, "Nothing in this time."));
    return h("details", { open }, h("summary", {}, "As a table"), box);
  }
}

/** Choose three or four round numbers for an axis. */
function scale(most) {
  const power = 10 ** Math.floor(Math.log10(most));
  const step = Math.max(1, [0.2, 0.5, 1, 2, 5].map((each) => each * power).find((each) => most / each <= 4) ?? power);
  return { step, top: Math.ceil(most / step) * step };
}
