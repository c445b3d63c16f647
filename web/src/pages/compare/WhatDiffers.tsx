import { ErrorNotice, Loading } from "../../components/Notice";
import { PlainHead } from "../../components/table/PlainHead";
import { clipped, printable } from "../../format/printable";
import { formatCount } from "../../format/units";
import { type Compared, useCompared } from "./asked";
import { type Setting, settingsOf } from "./settings";

/** Characters of a value that are shown; a command may have thousands. */
const MOST = 400;

/** In what the runs themselves differ: changes may come from that, and not from the program. */
export function WhatDiffers({ compared }: { compared: Compared }) {
  const answer = useCompared(compared, "setting");
  if (answer.state === "failed") return <ErrorNotice error={answer.error} />;
  if (!answer.value) return <Loading what="Comparing what was recorded of both runs…" />;
  const { differing, ofOne, same } = settingsOf(answer.value.results, compared.details, compared.sides);
  return (
    <section aria-label="What differs between the runs">
      <h2>What differs between the runs</h2>
      {differing.length > 0 ? (
        <SettingTable label="What differs" settings={differing} names={compared.names} />
      ) : (
        <p>Nothing of what was recorded of both.</p>
      )}
      {ofOne.length > 0 && (
        <details>
          <summary>Recorded of one run only ({formatCount(ofOne.length)})</summary>
          <SettingTable label="Recorded of one run only" settings={ofOne} names={compared.names} />
        </details>
      )}
      {same.length > 0 && (
        <details>
          <summary>The same in both ({formatCount(same.length)})</summary>
          <SettingTable label="The same in both" settings={same} names={compared.names} />
        </details>
      )}
    </section>
  );
}

interface TableProps {
  readonly label: string;
  readonly settings: readonly Setting[];
  readonly names: readonly [string, string];
}

function SettingTable({ label, settings, names }: TableProps) {
  return (
    <div class="timeline-rows">
      <table class="plain" aria-label={label}>
        <PlainHead columns={[null, `before: ${names[0]}`, `now: ${names[1]}`]} />
        <tbody>
          {settings.map(({ words, before, now }) => (
            <tr key={words}>
              <th scope="row" class="setting-name">
                {words}
              </th>
              <SettingValue value={before} />
              <SettingValue value={now} />
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function SettingValue({ value }: { value: string | null }) {
  if (value === null) return <td class="setting-value dim">not recorded</td>;
  const text = printable(value);
  return (
    <td class="setting-value" title={text.length > MOST ? clipped(text, 4_000) : undefined}>
      {clipped(text, MOST)}
    </td>
  );
}
