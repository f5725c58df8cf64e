/** Numbers as people read them. Everything here is pure; only `clock` and `when` look at the viewer's time zone. */

const GIB = 2 ** 30;
const MIB = 2 ** 20;

/** Bytes → "71.3": GiB with one decimal, no unit. */
export function gibNumber(bytes: number): string {
  return (bytes / GIB).toFixed(1);
}

/** Bytes → "71.3 GiB"; under 0.1 GiB "52 MiB". Never negative: see `short`. */
export function gib(bytes: number): string {
  const size = Math.max(0, bytes);
  return size > 0 && size < GIB / 10
    ? `${Math.max(1, Math.round(size / MIB))} MiB`
    : `${gibNumber(size)} GiB`;
}

/** Two sentences one after the other, with a stop between them; the second may be a command, and may be missing. */
export function sentences(first: string, second: string | undefined): string {
  if (second === undefined || second === '') return first;
  return `${first}${/[.:;?]$/.test(first) ? '' : '.'} ${second}`;
}

/** Spare bytes (may be negative) → "16.5 GiB to spare" or "4.4 GiB short". */
export function spareOrShort(bytes: number): string {
  return bytes < 0 ? `${gib(-bytes)} short` : `${gib(bytes)} to spare`;
}

/** Milliseconds → "340 ms", "0:04", "2:52", "1:04:10", "6 days". */
export function duration(milliseconds: number): string {
  const span = Math.max(0, milliseconds);
  if (span > 0 && span < 1000) return `${Math.round(span)} ms`;
  return stopwatch(span);
}

/** Milliseconds of something short → "340 ms", "2.8 s", from ten seconds on as `stopwatch`. */
export function brief(milliseconds: number): string {
  if (milliseconds < 1000 || milliseconds >= 10_000) return duration(milliseconds);
  return `${(milliseconds / 1000).toFixed(1)} s`;
}

/** Milliseconds → "0:00", "0:04", "1:04:10", from two days on "6 days": no milliseconds, for running clocks. */
export function stopwatch(milliseconds: number): string {
  const seconds = Math.floor(Math.max(0, milliseconds) / 1000);
  if (seconds >= 2 * 86_400) return `${Math.floor(seconds / 86_400)} days`;
  const rest = `${String(Math.floor(seconds / 60) % 60)}`;
  const tail = String(seconds % 60).padStart(2, '0');
  return seconds < 3600
    ? `${rest}:${tail}`
    : `${Math.floor(seconds / 3600)}:${rest.padStart(2, '0')}:${tail}`;
}

/** Seconds of age → "9 h 12 min", "6 days", "4 min", "12 s". */
export function age(seconds: number): string {
  const whole = Math.max(0, Math.floor(seconds));
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min`;
  if (whole < 2 * 86_400) return `${Math.floor(whole / 3600)} h ${Math.floor(whole / 60) % 60} min`;
  return `${Math.floor(whole / 86_400)} days`;
}

/** "1 thing", "3 things"; `many` where the plural is no plain s. */
export function plural(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`;
}

/** Words joined as a person says them: "a", "a and b", "a, b and c". */
export function list(words: readonly string[]): string {
  return words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} and ${words.at(-1)}`;
}

/** ISO time → "10:02:49" in the viewer's zone; what is no time comes back as it was. */
export function clock(iso: string): string {
  const date = new Date(iso);
  if (Number.isNaN(date.getTime())) return iso;
  return [date.getHours(), date.getMinutes(), date.getSeconds()].map(twoDigits).join(':');
}

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];

/** ISO time → "10:02:49" today, "yesterday 18:20", "12 Nov 18:20", other years with the year. `now` in ms. */
export function when(iso: string, now: number): string {
  const date = new Date(iso);
  if (Number.isNaN(date.getTime())) return iso;
  const today = new Date(now);
  const yesterday = new Date(today.getFullYear(), today.getMonth(), today.getDate() - 1);
  const time = `${twoDigits(date.getHours())}:${twoDigits(date.getMinutes())}`;
  if (sameDay(date, today)) return clock(iso);
  if (sameDay(date, yesterday)) return `yesterday ${time}`;
  const year = date.getFullYear() === today.getFullYear() ? '' : ` ${date.getFullYear()}`;
  return `${date.getDate()} ${MONTHS[date.getMonth()]}${year} ${time}`;
}

/** 131072 → "131,072". */
export function thousands(count: number): string {
  return String(count).replace(/\B(?=(\d{3})+$)/g, ',');
}

/** Tokens per second: one decimal under 100, else whole. */
export function rate(perSecond: number): string {
  return perSecond < 100 ? perSecond.toFixed(1) : String(Math.round(perSecond));
}

function sameDay(a: Date, b: Date): boolean {
  return a.getFullYear() === b.getFullYear() && a.getMonth() === b.getMonth() && a.getDate() === b.getDate();
}

function twoDigits(value: number): string {
  return String(value).padStart(2, '0');
}
