/** One word for a POSIX shell, so that it arrives as it is. A NUL cannot be an argument: that is a bug, and throws. */
export function quote(word: string): string {
  if (word.includes('\0')) throw new Error('an argument cannot hold a NUL byte');
  return `'${word.replaceAll("'", `'\\''`)}'`;
}

/** The same, but words that need no quotes get none: for scripts and commands that people read. */
export function quotePlainly(word: string): string {
  return /^[A-Za-z0-9_./:=@%+,-]+$/.test(word) ? word : quote(word);
}
