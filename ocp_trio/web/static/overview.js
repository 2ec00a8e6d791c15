// The figures at the top: slots, queue, output, and what has become of requests.

import { $, h, svg, text } from "./dom.js";
import { compact, count, span, things } from "./format.js";

const MOST_SEGMENTS = 32;
const SECONDS = 90;

/** Show a number out of a whole as that many segments, or as one bar where there would be too many. */
function segments(element, filled, whole) {
  const most = Math.min(whole, MOST_SEGMENTS);
  const on = whole <= MOST_SEGMENTS ? filled : Math.ceil((filled / whole) * most);
  while (element.childElementCount > most) element.lastChild.remove();
  while (element.childElementCount < most) element.append(h("i"));
  [...element.children].forEach((segment, index) => segment.classList.toggle("on", index < on));
}

export class Overview {
  constructor() {
    this.rates = [];
    this.deltas = null;
    this.produced = 0;
    this.path = svg("path", { class: "area" });
    $("rate-line").append(svg("svg", { viewBox: `0 0 ${SECONDS - 1} 30`, preserveAspectRatio: "none" }, this.path));
  }

  update(state) {
    const { inflight, maxConcurrent, queued, maxQueue, queueRejections } = state.concurrency;
    text($("slots"), count(inflight));
    text($("slots-of"), `of ${count(maxConcurrent)} taken`);
    segments($("slots-bar"), inflight, maxConcurrent);
    text($("queue"), count(queued));
    text($("queue-of"), `of ${things(maxQueue, "place")}${queueRejections ? `, ${count(queueRejections)} refused` : ""}`);
    segments($("queue-bar"), queued, maxQueue);
    this.outcomes(state.stats);
    this.produced += state.deltas - (this.deltas ?? state.deltas);
    this.deltas = state.deltas;
  }

  outcomes({ totalRequests, succeeded, cancelled, timeouts, errors, activeRequests }) {
    text($("total"), compact(totalRequests));
    const parts = { "complete": succeeded, "running": activeRequests, "cancelled": cancelled, "timed out": timeouts, "failed": errors };
    const some = Object.entries(parts).filter(([, number]) => number > 0);
    text($("outcomes"), some.map(([name, number]) => `${compact(number)} ${name}`).join(" · ") || "none yet");
    const bars = some.map(([name, number]) => {
      const bar = h("i", { "data-outcome": name });
      bar.style.flexGrow = number;
      return bar;
    });
    $("outcomes-bar").replaceChildren(...bars);
  }

  tick(now) {
    text($("uptime"), `in ${span(now)}`);
    this.rates.push(this.produced);
    this.rates.splice(0, this.rates.length - SECONDS);
    this.produced = 0;
    const few = this.rates.slice(-5);
    text($("rate"), compact(Math.round(few.reduce((sum, each) => sum + each, 0) / few.length)));
    const top = Math.max(10, ...this.rates);
    const from = SECONDS - this.rates.length;
    const points = this.rates.map((rate, index) => `${from + index} ${(29 - (rate / top) * 27).toFixed(1)}`);
    this.path.setAttribute("d", `M${from} 30L${points.join("L")}L${SECONDS - 1} 30Z`);
  }
}
