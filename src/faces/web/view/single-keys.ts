const KEPT = 'firstlight-single-keys';

/** Whether single keys do anything: a person who speaks to the computer, or hits keys unwillingly, turns them off. */
export function singleKeys(): boolean {
  try {
    return localStorage.getItem(KEPT) !== 'off';
  } catch {
    return true;
  }
}

/** Kept for the next visit. */
export function keepSingleKeys(on: boolean): void {
  try {
    if (on) localStorage.removeItem(KEPT);
    else localStorage.setItem(KEPT, 'off');
  } catch {
    // A browser that keeps nothing forgets it when it is closed.
  }
}
