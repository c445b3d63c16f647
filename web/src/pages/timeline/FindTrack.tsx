import { useState } from "preact/hooks";
import { tracksMatching } from "../../canvas/find_track";
import { Dialog } from "../../components/Dialog";
import type { TimelineController } from "./controller";

/** Tracks by name; the first that is found is gone to with Enter. */
export function FindTrack({
  controller,
  isOpen,
  onClose,
}: {
  controller: TimelineController;
  isOpen: boolean;
  onClose: () => void;
}) {
  const [text, setText] = useState("");
  const found = isOpen ? tracksMatching(controller.rows.all, text) : [];
  const goTo = (key: string | undefined) => {
    const each = controller.rows.all.find((each) => each.key === key);
    onClose();
    if (each) controller.visitTrack(each);
  };
  return (
    <Dialog title="Find a track" isOpen={isOpen} onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          goTo(found[0]?.key);
        }}
      >
        <input
          type="search"
          aria-label="Part of a track's name"
          value={text}
          autoFocus
          onInput={(event) => setText(event.currentTarget.value)}
        />
      </form>
      <ul class="timeline-found">
        {found.map((each) => (
          <li key={each.key}>
            <button type="button" onClick={() => goTo(each.key)}>
              {each.path}
            </button>
          </li>
        ))}
      </ul>
      {found.length === 0 && <p class="dim">No track has that in its name.</p>}
    </Dialog>
  );
}
