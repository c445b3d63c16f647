import { PAGES } from "../pages/registry";
import { hrefOf, route } from "../state/route";
import { detail } from "../state/runs";

/** The pages; those with nothing to show stay readable and say why. */
export function Navigation() {
  const known = detail.value;
  const here = route.value.page;
  return (
    <nav aria-label="Pages">
      <ul>
        {PAGES.map((page) => {
          const missing = known && page.missing(known);
          return (
            <li key={page.id}>
              <a
                href={hrefOf(page.id)}
                aria-current={page.id === here ? "page" : undefined}
                class={missing ? "missing" : undefined}
                title={(missing ?? page.about).replaceAll("`", "")}
              >
                {page.title}
                {missing && <span class="hidden"> (nothing to show)</span>}
              </a>
            </li>
          );
        })}
      </ul>
    </nav>
  );
}
