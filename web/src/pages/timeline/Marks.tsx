import { inOrder, NOTE_LENGTH, noted, unmarked } from "../../canvas/marks";
import { Empty } from "../../components/Notice";
import { PlainHead } from "../../components/table/PlainHead";
import { Value } from "../../components/Value";
import { formatCount } from "../../format/units";
import { setParams } from "../../state/route";
import { address } from "./address";
import type { TimelineController } from "./controller";

/** The marks in their order, each with a note that can be written; the link keeps both. */
export function Marks({ controller }: { controller: TimelineController }) {
  const marks = inOrder(address.marks.value);
  if (marks.length === 0) {
    return (
      <Empty>
        No moment is marked: <kbd>M</kbd> marks the one at the pointer.
      </Empty>
    );
  }
  return (
    <div class="timeline-rows">
      <table>
        <caption class="dim">The link of this page has the marks with their notes.</caption>
        <PlainHead
          columns={[{ number: "mark" }, { number: "time" }, { number: "since the one before" }, "note", null]}
        />
        <tbody>
          {marks.map(({ time_ns, note }, at) => {
            const number = formatCount(at + 1);
            const before = marks[at - 1];
            return (
              <tr key={`${time_ns} ${at}`}>
                <th scope="row" class="number">
                  <button
                    type="button"
                    class="link"
                    aria-label={`Go to mark ${number}`}
                    onClick={() => setParams(controller.viewport.centred(time_ns))}
                  >
                    {number}
                  </button>
                </th>
                <td class="number">
                  <Value unit="ns" value={time_ns} />
                </td>
                <td class="number">
                  <Value unit="ns" value={before ? time_ns - before.time_ns : null} />
                </td>
                <td>
                  <input
                    type="text"
                    class="timeline-note"
                    maxLength={NOTE_LENGTH}
                    aria-label={`Note of mark ${number}`}
                    placeholder="A few words"
                    value={note}
                    onInput={({ currentTarget }) =>
                      controller.setMarks(noted(address.marks.peek(), time_ns, currentTarget.value))
                    }
                  />
                </td>
                <td>
                  <button
                    type="button"
                    class="small"
                    aria-label={`Remove mark ${number}`}
                    onClick={() => controller.setMarks(unmarked(address.marks.peek(), time_ns))}
                  >
                    Remove
                  </button>
                </td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}
