import type { RefObject } from "preact";
import { askRaw, bodyOf, withToken } from "../../api/client";
import { CLASS_WORDS } from "../../canvas/class_words";
import { CLASSES } from "../../classes";
import { searchText } from "../../components/links";
import { Menu } from "../../components/Menu";
import { clipped } from "../../format/printable";
import { formatCount, formatNs } from "../../format/units";
import { showsCondensed } from "../../state/rank";
import { run } from "../../state/runs";
import { address } from "./address";
import type { TimelineController } from "./controller";
import { OnlyCollectives } from "./OnlyCollectives";
import { openInPerfetto } from "./perfetto";
import { savePixels, saveShapes } from "./picture";
import { TrackFilter } from "./TrackFilter";

interface Props {
  readonly controller: TimelineController;
  readonly search: RefObject<HTMLInputElement | null>;
  readonly onFind: () => void;
  readonly onList: () => void;
}

/** Search, and what is done with all that is shown. */
export function Toolbar({ controller, search, onFind, onList }: Props) {
  return (
    <div class="timeline-bar">
      <OnlyCollectives />
      <Search controller={controller} field={search} />
      <TrackFilter controller={controller} />
      <button type="button" onClick={() => controller.fit()} title="F">
        Fit
      </button>
      <button type="button" onClick={onFind} title="Ctrl+P">
        Find a track
      </button>
      <button type="button" onClick={onList} title="L">
        List
      </button>
      <ExportMenu controller={controller} />
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
      <output class="dim">{lengthWords(controller)}</output>
    </div>
  );
}

function lengthWords(controller: TimelineController): string {
  const view = controller.viewport.shown.value;
  const { span } = controller.info;
  const shown_ns = Math.min(view.end_ns, span.end_ns) - Math.max(view.start_ns, span.start_ns);
  const shown = `${formatNs(Math.round(Math.max(shown_ns, 0)))} of ${formatNs(span.end_ns - span.start_ns)} shown`;
  return controller.canvas.isLoading.value ? `loading · ${shown}` : shown;
}

function Search({ controller, field }: { controller: TimelineController; field: RefObject<HTMLInputElement | null> }) {
  const { found, position } = controller.search.state.value;
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "Enter") controller.search.next(!event.shiftKey);
    else if (event.key === "Escape") {
      controller.search.set("");
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
        value={address.search.value}
        onInput={(event) => controller.search.set(event.currentTarget.value)}
        onKeyDown={onKeyDown}
      />
      {found && (
        <>
          <output>
            {position > 0 ? `${formatCount(position)} of ` : ""}
            {formatCount(found.slices)}
          </output>
          <button type="button" class="small" aria-label="Previous hit" onClick={() => controller.search.next(false)}>
            ↑
          </button>
          <button type="button" class="small" aria-label="Next hit" onClick={() => controller.search.next(true)}>
            ↓
          </button>
          {found.names.length > 0 && (
            <Menu label={namesWords(found.name_count ?? found.names.length)}>
              <ul class="timeline-found">
                {found.names.map(({ name, slices, total_ns }) => (
                  <li key={name}>
                    <button type="button" onClick={() => controller.search.set(searchText(name))}>
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

function ExportMenu({ controller }: { controller: TimelineController }) {
  const window = controller.range.value ?? controller.viewport.shown.value;
  const what = controller.range.value ? "the selected range" : "what is shown";
  const { ofRank } = controller.requests;
  const path = (format: "chrome" | "perfetto") => controller.requests.exportPath(format, window);
  const toPerfetto = async () => {
    try {
      const fetchTrace = async () => (await askRaw(path("perfetto"))).arrayBuffer();
      await openInPerfetto(run.value?.name ?? "Stepscope", fetchTrace);
    } catch (error) {
      controller.canvas.error.value = bodyOf(error);
    }
  };
  if (showsCondensed.value) {
    return (
      <Menu label="Export">
        <p>The events of all ranks do not fit into memory. Choose a rank to export its events.</p>
        <Picture controller={controller} />
      </Menu>
    );
  }
  return (
    <Menu label="Export">
      <p>
        Of {what}, {formatNs(Math.round(window.end_ns - window.start_ns))}
        {ofRank === null ? "" : ` of rank ${ofRank}`}:
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
      <Picture controller={controller} />
    </Menu>
  );
}

function Picture({ controller }: { controller: TimelineController }) {
  const name = run.value?.name ?? "timeline";
  return (
    <>
      <p>
        <button type="button" onClick={() => savePixels(name)}>
          Picture of what is shown (PNG)
        </button>
      </p>
      <p>
        <button type="button" onClick={() => saveShapes(name, (pen) => controller.drawWith(pen))}>
          The same in shapes and texts (SVG)
        </button>
      </p>
    </>
  );
}
