// Ask the server again when there is something new to see, but not with every event.

export class Paced {
  /** `act` is called when what is noted has changed: `pause` milliseconds after its last call at the earliest. */
  constructor(act, pause) {
    this.act = act;
    this.pause = pause;
    this.at = -Infinity;
    this.forget();
  }

  note(about, { now = false } = {}) {
    if (about === this.about) return;
    this.about = about;
    clearTimeout(this.timer);
    const wait = now ? 0 : Math.max(0, this.at + this.pause - performance.now());
    this.timer = setTimeout(() => {
      this.at = performance.now();
      this.act();
    }, wait);
  }

  forget() {
    clearTimeout(this.timer);
    this.about = null;
  }
}
