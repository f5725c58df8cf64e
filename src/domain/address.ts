/** `::ffff:10.0.0.1` → `10.0.0.1`; a zone goes too. */
export function plainAddress(address: string): string {
  return address.replace(/^::ffff:(?=\d+\.)/i, '').replace(/%.*$/, '');
}

/** 127.0.0.0/8, ::1 and `localhost`, also mapped into IPv6. */
export function isLoopback(address: string): boolean {
  const plain = plainAddress(address);
  return /^127(?:\.\d{1,3}){3}$/.test(plain) || plain === '::1' || plain.toLowerCase() === 'localhost';
}

/** "192.168.200.12", 24 → "192.168.200.0/24"; IPv4 only, no link-local or loopback. */
export function subnetOf(address: string, prefix: number): string | undefined {
  const parts = address.split('.').map(Number);
  if (parts.length !== 4 || parts.some((part) => !Number.isInteger(part))) return undefined;
  if (isLoopback(address) || address.startsWith('169.254.')) return undefined;
  const value = parts.reduce((sum, part) => sum * 256 + part, 0);
  const size = 2 ** (32 - prefix);
  return `${Math.floor(value / size) * size}/${prefix}`;
}
