import { useState } from "preact/hooks";
import { Dialog } from "../components/Dialog";
import { PAGES } from "../pages/registry";
import { hrefOf, place } from "../state/place";
import { analyses, detail } from "../state/runs";
import { isPaletteOpen } from "./keys";
import { type Destination, found } from "./search";

/** Pages and tables by what is typed; Enter goes to the first. */
export function Palette() {
  const [typed, setTyped] = useState("");
  const close = () => {
    isPaletteOpen.value = false;
    setTyped("");
  };
  const known = detail.value;
  const pages: Destination[] = PAGES.map((page) => ({
    title: page.title,
    about: (known && page.missing(known)) ?? page.about,
    href: hrefOf(page.id),
  }));
  const tables = [...analyses.value.values()].map((analysis) => ({
    title: analysis.name,
    about: analysis.definition,
    href: hrefOf("tables", { analysis: analysis.name }),
  }));
  const shown = isPaletteOpen.value ? found([...pages, ...tables], typed) : [];
  // The links are of this place: reading it here makes them follow it.
  void place.value;
  const onSubmit = (event: Event) => {
    event.preventDefault();
    const first = shown[0];
    if (first) location.assign(first.href);
    close();
  };
  return (
    <Dialog title="Go to" isOpen={isPaletteOpen.value} onClose={close}>
      <form onSubmit={onSubmit}>
        <input
          type="search"
          aria-label="Page or table"
          placeholder="Page or table"
          autofocus
          value={typed}
          onInput={(event) => setTyped(event.currentTarget.value)}
        />
      </form>
      <ul class="destinations">
        {shown.map((destination) => (
          <li key={destination.href}>
            <a href={destination.href} onClick={close}>
              <strong>{destination.title}</strong> <span class="dim">{destination.about}</span>
            </a>
          </li>
        ))}
      </ul>
      <p role="status" class="dim">
        {shown.length === 0 ? "Nothing has this in its name." : ""}
      </p>
    </Dialog>
  );
}
