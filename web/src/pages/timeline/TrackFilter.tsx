import { formatCount } from "../../format/units";
import { address } from "./address";
import type { TimelineController } from "./controller";

/** Keeps only the tracks that have some words in their names, or in those of their groups. */
export function TrackFilter({ controller }: { controller: TimelineController }) {
  const { kept } = controller.rows.shown.value;
  const onKeyDown = (event: KeyboardEvent & { readonly currentTarget: HTMLInputElement }) => {
    if (event.key !== "Escape") return;
    controller.filterTracks("");
    event.currentTarget.blur();
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <div class="timeline-search timeline-filter">
      <input
        type="search"
        placeholder="Filter tracks"
        aria-label="Keep tracks by name or group"
        value={address.tracks.value}
        onInput={(event) => controller.filterTracks(event.currentTarget.value)}
        onKeyDown={onKeyDown}
      />
      {kept && (
        <output>
          {kept.tracks === 0 ? "no track" : formatCount(kept.tracks)} of {formatCount(kept.allTracks)}
        </output>
      )}
    </div>
  );
}
