// Follow the server's events for as long as the page is open. EventSource cannot send a key, so fetch reads them.

import { Refused, send } from "./api.js";

const SILENCE = 25000; // milliseconds; a server that lives says so every 10 s
const FIRST_WAIT = 500;
const LONGEST_WAIT = 10000;

/** Yield the data of each event of a response. */
async function* events(response, heard) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    heard();
    const blocks = (rest + value).split("\n\n");
    rest = blocks.pop();
    // A block that begins with a colon is the server's heartbeat.
    for (const block of blocks) if (block.startsWith("data: ")) yield JSON.parse(block.slice(6));
  }
}

export class Feed {
  /**
   * `tell` is called with each event, `changed` with "live", "lost" or "refused" and, for that, the problem.
   * `may` says whether there is any use in asking.
   */
  constructor({ tell, changed, may }) {
    this.tell = tell;
    this.may = may;
    this.changed = changed;
    this.connection = new AbortController();
    this.wake = () => {};
    this.hurry = false;
  }

  /** Connect anew at once, with the key that is there now. */
  restart() {
    this.hurry = true;
    this.connection.abort();
    this.wake();
  }

  async run() {
    let wait = FIRST_WAIT;
    for (;;) {
      this.connection = new AbortController();
      this.hurry = false;
      try {
        if (!(await this.may())) throw new Refused(401, "");
        await this.follow(this.connection, () => (wait = FIRST_WAIT));
        this.changed("lost");
      } catch (problem) {
        if (this.hurry) continue;
        const refused = problem.status === 401 || problem.status === 403;
        this.changed(refused ? "refused" : "lost", problem);
        if (refused) wait = Infinity;
      }
      await this.sleep(wait);
      wait = Math.min((Number.isFinite(wait) ? wait : FIRST_WAIT) * 2, LONGEST_WAIT);
    }
  }

  async follow(connection, lives) {
    let watchdog = 0;
    const heard = () => {
      clearTimeout(watchdog);
      watchdog = setTimeout(() => connection.abort(), SILENCE);
    };
    try {
      heard();
      const response = await send("GET", "dashboard/events", { signal: connection.signal });
      for await (const event of events(response, heard)) {
        lives();
        this.changed("live");
        this.tell(event);
      }
    } finally {
      clearTimeout(watchdog);
    }
  }

  sleep(milliseconds) {
    return new Promise((resolve) => {
      const timer = Number.isFinite(milliseconds) ? setTimeout(resolve, milliseconds) : 0;
      this.wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}
