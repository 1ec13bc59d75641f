// view returns what a path shows, as text.
export function view(path: string): string {
  if (path === "/") {
    return "Every path that names no file is this page.";
  }
  if (path === "/about") {
    return "The paths below are routes of the page, not files on the node.";
  }
  const item = /^\/items\/(\d+)$/.exec(path);
  return item ? `Item ${item[1]}` : `There is nothing at ${path}.`;
}
