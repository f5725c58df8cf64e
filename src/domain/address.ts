/** `::ffff:10.0.0.1` → `10.0.0.1`; a zone goes too. */
export function plainAddress(address: string): string {
  return address.replace(/^::ffff:(?=\d+\.)/i, '').replace(/%.*$/, '');
}

/** 127.0.0.0/8, ::1 and `localhost`, also mapped into IPv6. */
export function isLoopback(address: string): boolean {
  const plain = plainAddress(address);
  return /^127(?:\.\d{1,3}){3}$/.test(plain) || plain === '::1' || plain.toLowerCase() === 'localhost';
}
