// Before the first paint, so that the page does not flash: the theme a person chose, else the system's.
try {
  const chosen = localStorage.getItem('firstlight-theme');
  if (chosen === 'dark' || chosen === 'light') document.documentElement.dataset.theme = chosen;
} catch {
  // A browser that keeps nothing follows the system.
}
