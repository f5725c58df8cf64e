/** Whether what a host's tools said of a file that was not written is that there is no room for it. */
export function saysFullDisk(text: string): boolean {
  return /No space left|Disk quota exceeded/i.test(text);
}

/** Where firstlight keeps its own files on a node, and what fills that. */
export function makeRoom(node: string): string {
  return `make room, on ${node}: df -h ~; du -xh --max-depth=1 ~`;
}
