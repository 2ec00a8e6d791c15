// Numbers and times as people read them.

const whole = new Intl.NumberFormat("en");
const short = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

export const count = (number) => whole.format(number);
export const compact = (number) => (number < 10000 ? whole.format(number) : short.format(number));

/** A number of things, in words. */
export const things = (number, one, many = `${one}s`) => `${count(number)} ${number === 1 ? one : many}`;

/** A clock that counts up: 7 s, 1:03, 2:00:05. */
export function clock(seconds) {
  const all = Math.max(0, Math.floor(seconds));
  const two = (number) => String(number).padStart(2, "0");
  if (all < 60) return `${all} s`;
  const minutes = Math.floor(all / 60);
  if (minutes < 60) return `${minutes}:${two(all % 60)}`;
  return `${Math.floor(minutes / 60)}:${two(minutes % 60)}:${two(all % 60)}`;
}

/** A rough span: 40 s, 12 min, 3 h, 5 days. */
export function span(seconds) {
  if (seconds < 60) return `${Math.max(0, Math.floor(seconds))} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 48 * 3600) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86400)} days`;
}

export const timeOfDay = (date) => date.toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
export const hour = (date) => date.toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });
export const day = (date) => date.toLocaleDateString("en-GB", { day: "numeric", month: "short" });
