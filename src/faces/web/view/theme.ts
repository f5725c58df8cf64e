/** Dark or light: the other one than now, kept for the next visit. */
export function toggleTheme(): void {
  const root = document.documentElement;
  const system = matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light';
  const next = (root.dataset['theme'] ?? system) === 'dark' ? 'light' : 'dark';
  root.dataset['theme'] = next;
  dispatchEvent(new Event('theme'));
  try {
    localStorage.setItem('firstlight-theme', next);
  } catch {
    // A browser that keeps nothing shows it until it is closed.
  }
}
