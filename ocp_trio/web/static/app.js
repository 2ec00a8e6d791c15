// The dashboard: follows the server's events and shows them; one clock, the server's, counts on between two events.

import { call, session } from "./api.js";
import { $, text } from "./dom.js";
import { Feed } from "./feed.js";
import { span, timeOfDay } from "./format.js";
import { Keys } from "./keys.js";
import { Overview } from "./overview.js";
import { Streams, showErrors } from "./streams.js";
import { Usage } from "./usage.js";

const streams = new Streams();
const overview = new Overview();
const usage = new Usage();
const keys = new Keys();

let told = null; // the last state
let asking = false; // whether somebody who may see this signs in as somebody else
let clock = { now: 0, at: 0 };
const now = () => clock.now + (performance.now() - clock.at) / 1000;
const wallTime = (when) => timeOfDay(new Date(Date.now() - (now() - when) * 1000));

const CONNECTION = { live: "Live", lost: "Connection lost: trying again", refused: "Signed out", draining: "Server is stopping" };

function showConnection(state) {
  $("connection").dataset.state = state;
  text($("connection"), CONNECTION[state]);
}

function show({ now: when, state }) {
  clock = { now: when, at: performance.now() };
  told = state;
  if (session.key && state.authMode === "none" && !state.you.admin) return refuse("This is not the administrator's key.");
  $("sign-in").hidden = !asking;
  $("content").hidden = false;
  showConnection(state.status === "draining" ? "draining" : "live");
  text($("instance"), state.instanceName === "ocp-trio" ? "" : state.instanceName);
  document.title = `${state.running.length ? `(${state.running.length}) ` : ""}${state.instanceName}`;
  text($("who"), state.you.name ?? "");
  $("session").hidden = !(session.key || state.adminKey);
  text($("session"), session.key ? "Sign out" : "Sign in as administrator");
  overview.update(state);
  streams.update(state, now());
  showErrors(state.ended, wallTime);
  usage.update(state);
  keys.update(state);
  text($("version"), `ocp_trio ${state.version} · up for ${span(now())}`);
}

/** Ask again for a key that does no more than none. */
function refuse(problem) {
  session.key = null;
  askForKey(true);
  text($("sign-in-problem"), problem);
  feed.restart();
}

function changed(state, problem) {
  if (state === "live") return;
  showConnection(state);
  if (state !== "refused") return;
  text($("sign-in-problem"), session.key ? problem.message : "");
  session.key = null;
  $("content").hidden = true;
  $("session").hidden = true;
  text($("who"), "");
  askForKey(false);
}

function askForKey(may) {
  asking = may;
  $("sign-in").hidden = false;
  $("sign-in-cancel").hidden = !may;
  $("key").value = "";
  $("key").focus();
}

/** Without a key there is only to see what a server shows that asks nobody for one. */
async function may() {
  return session.key !== null || (await call("GET", "health")).authMode === "none";
}

const feed = new Feed({ tell: show, changed, may });

$("sign-in").addEventListener("submit", (event) => {
  event.preventDefault();
  session.key = $("key").value.trim();
  $("key").value = "";
  text($("sign-in-problem"), "");
  asking = false;
  feed.restart();
});
$("sign-in-cancel").addEventListener("click", () => {
  asking = false;
  $("sign-in").hidden = true;
  $("session").focus();
});
$("session").addEventListener("click", () => {
  if (!session.key) return askForKey(true);
  session.key = null;
  keys.forget();
  feed.restart();
});

setInterval(() => {
  if (told === null || $("content").hidden) return;
  overview.tick(now());
  streams.tick(now());
}, 1000);
feed.run();
