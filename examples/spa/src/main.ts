import { view } from "./routes";
import "./style.css";

const target = document.querySelector<HTMLElement>("#view")!;

function show(): void {
  target.textContent = view(location.pathname);
}

document.addEventListener("click", (event) => {
  const link = (event.target as Element).closest("a");
  if (link && link.origin === location.origin) {
    event.preventDefault();
    history.pushState(null, "", link.href);
    show();
  }
});
addEventListener("popstate", show);
show();
