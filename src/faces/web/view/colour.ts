/** A colour of the style sheet as a canvas takes it, light or dark as the page is now. `name` as in `--accent`. */
export function colour(name: string): string {
  const probe = document.createElement('i');
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}
