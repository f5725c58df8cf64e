/**
 * First 16 hex digits of the SHA-256 over a value's canonical JSON: keys sorted, undefined keys left out. Two
 * values with the same meaning have the same digest, however their keys were ordered. Pure, so that it also runs
 * in a browser. Throws a plain Error for what JSON cannot hold.
 */
export function digestOf(value: unknown): string {
  return sha256(canonical(value)).slice(0, 16);
}

/** JSON with sorted keys and no white space. */
export function canonical(value: unknown): string {
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return JSON.stringify(value);
  if (typeof value === 'number') {
    if (!Number.isFinite(value)) throw new Error(`${value} has no JSON form`);
    return JSON.stringify(value);
  }
  if (Array.isArray(value)) return `[${value.map((item) => canonical(item ?? null)).join(',')}]`;
  if (typeof value !== 'object') throw new Error(`a ${typeof value} has no JSON form`);
  const entries = Object.entries(value)
    .filter(([, item]) => item !== undefined)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, item]) => `${JSON.stringify(key)}:${canonical(item)}`);
  return `{${entries.join(',')}}`;
}

/** SHA-256 of the UTF-8 text, as 64 hex digits (FIPS 180-4). */
export function sha256(text: string): string {
  const bytes = new TextEncoder().encode(text);
  const blocks = Math.ceil((bytes.length + 9) / 64);
  const padded = new Uint8Array(blocks * 64);
  padded.set(bytes);
  padded[bytes.length] = 0x80;
  const view = new DataView(padded.buffer);
  view.setBigUint64(padded.length - 8, BigInt(bytes.length) * 8n);

  const hash = Uint32Array.from(FIRST);
  const words = new Uint32Array(64);
  for (let block = 0; block < padded.length; block += 64) {
    for (let i = 0; i < 16; i++) words[i] = view.getUint32(block + i * 4);
    for (let i = 16; i < 64; i++) {
      const x = at(words, i - 15);
      const y = at(words, i - 2);
      const s0 = turn(x, 7) ^ turn(x, 18) ^ (x >>> 3);
      const s1 = turn(y, 17) ^ turn(y, 19) ^ (y >>> 10);
      words[i] = at(words, i - 16) + s0 + at(words, i - 7) + s1;
    }
    compress(hash, words);
  }
  return [...hash].map((word) => word.toString(16).padStart(8, '0')).join('');
}

function compress(hash: Uint32Array, words: Uint32Array): void {
  const s = Uint32Array.from(hash);
  for (let i = 0; i < 64; i++) {
    const [a, b, c, e, f, g] = [at(s, 0), at(s, 1), at(s, 2), at(s, 4), at(s, 5), at(s, 6)];
    const big1 = turn(e, 6) ^ turn(e, 11) ^ turn(e, 25);
    const t1 = at(s, 7) + big1 + ((e & f) ^ (~e & g)) + at(ROUND, i) + at(words, i);
    const big0 = turn(a, 2) ^ turn(a, 13) ^ turn(a, 22);
    const t2 = big0 + ((a & b) ^ (a & c) ^ (b & c));
    s.copyWithin(1, 0, 7);
    s[4] = at(s, 4) + t1;
    s[0] = t1 + t2;
  }
  for (let i = 0; i < 8; i++) hash[i] = at(hash, i) + at(s, i);
}

function at(words: Uint32Array, index: number): number {
  return words[index] ?? 0;
}

function turn(word: number, bits: number): number {
  return (word >>> bits) | (word << (32 - bits));
}

/** The first primes; their roots' fractions are the constants of the standard. */
const PRIMES = firstPrimes(64);
const FIRST = PRIMES.slice(0, 8).map((prime) => fraction(prime, 2));
const ROUND = Uint32Array.from(PRIMES.map((prime) => fraction(prime, 3)));

/** The first 32 bits of the fraction of a root; integers throughout, since a float's root is not exact enough to trust. */
function fraction(prime: number, degree: 2 | 3): number {
  const wanted = BigInt(prime) << BigInt(32 * degree);
  let root = 0n;
  for (let bit = 1n << 37n; bit > 0n; bit >>= 1n) {
    if ((root + bit) ** BigInt(degree) <= wanted) root += bit;
  }
  return Number(root & 0xffffffffn);
}

function firstPrimes(count: number): number[] {
  const primes: number[] = [];
  for (let number = 2; primes.length < count; number++) {
    if (primes.every((prime) => number % prime !== 0)) primes.push(number);
  }
  return primes;
}
