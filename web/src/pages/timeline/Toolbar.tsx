import type { RefObject } from "preact";
import { askRaw, bodyOf, withToken } from "../../api/client";
import { CLASS_WORDS } from "../../canvas/class_words";
import { CLASSES } from "../../classes";
import { searchText } from "../../components/links";
import { Menu } from "../../components/Menu";
import { clipped } from "../../format/printable";
import { formatCount, formatNs } from "../../format/units";
import { run } from "../../state/runs";
import type { Explore } from "./explore";
import { openInPerfetto } from "./perfetto";

interface Props {
  readonly explore: Explore;
  readonly search: RefObject<HTMLInputElement | null>;
  readonly onFind: () => void;
  readonly onList: () => void;
}

/** Search, and what is done with all that is shown. */
export function Toolbar({ explore, search, onFind, onList }: Props) {
  return (
    <div class="timeline-bar">
      <Search explore={explore} field={search} />
      <button type="button" onClick={() => explore.fit()} title="F">
        Fit
      </button>
      <button type="button" onClick={onFind} title="Ctrl+P">
        Find a track
      </button>
      <button type="button" onClick={onList} title="L">
        List
      </button>
      <ExportMenu explore={explore} />
      <Menu label="Colours">
        <ul class="timeline-classes">
          {CLASSES.map((name, nth) => (
            <li key={name}>
              <svg width="14" height="14" aria-hidden="true">
                <rect class={`class-${name}`} width="14" height="14" rx="2" />
              </svg>{" "}
              {CLASS_WORDS[nth]}
            </li>
          ))}
        </ul>
        <p class="dim">A foot that is lighter than its row: several slices stand in one pixel.</p>
        <p class="dim">Hatched: how busy the tracks of a closed group are on average.</p>
      </Menu>
      <span class="stretch" />
      <output class="dim">{lengthWords(explore)}</output>
    </div>
  );
}

function lengthWords(explore: Explore): string {
  const view = explore.view.value;
  if (!view) return "";
  const { span } = explore.info;
  const shown_ns = Math.min(view.end_ns, span.end_ns) - Math.max(view.start_ns, span.start_ns);
  const shown = `${formatNs(Math.round(Math.max(shown_ns, 0)))} of ${formatNs(span.end_ns - span.start_ns)} shown`;
  return explore.isBehind.value ? `loading · ${shown}` : shown;
}

function Search({ explore, field }: { explore: Explore; field: RefObject<HTMLInputElement | null> }) {
  const { found, position } = explore.search.state.value;
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "Enter") explore.nextHit(!event.shiftKey);
    else if (event.key === "Escape") {
      explore.setSearch("");
      field.current?.blur();
    } else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <search class="timeline-search">
      <input
        ref={field}
        type="search"
        placeholder="Search slices"
        aria-label="Search slices by name"
        aria-keyshortcuts="/"
        value={explore.address.value.search}
        onInput={(event) => explore.setSearch(event.currentTarget.value)}
        onKeyDown={onKeyDown}
      />
      {found && (
        <>
          <output>
            {position > 0 ? `${formatCount(position)} of ` : ""}
            {formatCount(found.slices)}
          </output>
          <button type="button" class="small" aria-label="Previous hit" onClick={() => explore.nextHit(false)}>
            ↑
          </button>
          <button type="button" class="small" aria-label="Next hit" onClick={() => explore.nextHit(true)}>
            ↓
          </button>
          {found.names.length > 0 && (
            <Menu label={namesWords(found.name_count ?? found.names.length)}>
              <ul class="timeline-found">
                {found.names.map(({ name, slices, total_ns }) => (
                  <li key={name}>
                    <button type="button" onClick={() => explore.setSearch(searchText(name))}>
                      <code>{clipped(name, 300)}</code> {formatCount(slices)} · {formatNs(total_ns)}
                    </button>
                  </li>
                ))}
              </ul>
            </Menu>
          )}
        </>
      )}
    </search>
  );
}

const namesWords = (count: number): string => `${formatCount(count)} ${count === 1 ? "name" : "names"}`;

function ExportMenu({ explore }: { explore: Explore }) {
  const window = explore.range.value ?? explore.view.value ?? null;
  const what = explore.range.value ? "the selected range" : "what is shown";
  const path = (format: "chrome" | "perfetto") => explore.requests.exportPath(format, window);
  const toPerfetto = async () => {
    try {
      const fetchTrace = async () => (await askRaw(path("perfetto"))).arrayBuffer();
      await openInPerfetto(run.value?.name ?? "Stepscope", fetchTrace);
    } catch (error) {
      explore.trouble.value = bodyOf(error);
    }
  };
  return (
    <Menu label="Export">
      <p>
        Of {what}
        {window && `, ${formatNs(Math.round(window.end_ns - window.start_ns))}`}:
      </p>
      <p>
        <a href={withToken(path("perfetto"))} download>
          Perfetto trace
        </a>
      </p>
      <p>
        <a href={withToken(path("chrome"))} download>
          Chrome JSON
        </a>
      </p>
      <button type="button" onClick={toPerfetto}>
        Open in Perfetto
      </button>
      <p class="dim">This gives the trace to ui.perfetto.dev, which reads it in your browser.</p>
    </Menu>
  );
}
