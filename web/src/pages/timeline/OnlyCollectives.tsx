import { RankPick } from "../../components/RankPick";
import { showsCondensed } from "../../state/rank";

/** That the timeline shows not all events, and how to see them; nothing where it shows all, or those of a rank. */
export function OnlyCollectives() {
  if (!showsCondensed.value) return null;
  return (
    <p class="timeline-only">
      Only collectives and device work of all ranks are shown;{" "}
      <RankPick label="choose a rank to see all of its events" />
    </p>
  );
}
