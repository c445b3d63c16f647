import { withToken } from "../api/client";
import { CopyButton } from "../components/CopyButton";
import { formatNs } from "../format/units";
import { hrefOf, setParams, timeWindow } from "../state/route";
import { isCutOff, run, runs } from "../state/runs";
import { THEMES, type Theme, theme } from "../state/theme";
import { isHelpOpen, isPaletteOpen } from "./keys";
import { RankAndStep } from "./RankAndStep";

/** What is shown, of which run, and what helps everywhere. */
export function Header() {
  const list = runs.value ?? [];
  const window = timeWindow.value;
  return (
    <header class="top">
      <a class="brand" href={hrefOf("overview")}>
        Stepscope
      </a>
      {list.length > 1 ? (
        <label class="run">
          Run
          <select
            class="of-run"
            value={run.value?.key}
            onChange={(event) => setParams({ run: event.currentTarget.value, rank: null, step: null, window: null })}
          >
            {list.map((run) => (
              <option key={run.id} value={run.key}>
                {run.name}
              </option>
            ))}
          </select>
        </label>
      ) : (
        <span class="run-name" title={run.value?.path}>
          {run.value?.name}
        </span>
      )}
      {run.value?.is_live && <span class="live">recording</span>}
      <Stale />
      {isCutOff.value && (
        <span class="cut-off" role="status">
          The server does not answer
        </span>
      )}
      <RankAndStep />
      {window && (
        <button type="button" class="chip" onClick={() => setParams({ window: null })} aria-label="Show the whole run">
          {formatNs(BigInt(window.start_ns))} to {formatNs(BigInt(window.end_ns))} <span aria-hidden="true">×</span>
        </button>
      )}
      <span class="stretch" />
      <button
        type="button"
        onClick={() => {
          isPaletteOpen.value = true;
        }}
      >
        Go to <kbd>Ctrl K</kbd>
      </button>
      <CopyButton text={() => withToken(location.href)}>Copy link</CopyButton>
      <label>
        <span class="hidden">Theme</span>
        <select
          value={theme.value}
          onChange={(event) => {
            theme.value = event.currentTarget.value as Theme;
          }}
        >
          {THEMES.map((name) => (
            <option key={name} value={name}>
              {name === "auto" ? "as the system" : name}
            </option>
          ))}
        </select>
      </label>
      <button
        type="button"
        aria-label="Keys"
        title="Keys (?)"
        onClick={() => {
          isHelpOpen.value = true;
        }}
      >
        ?
      </button>
    </header>
  );
}

/** Says that what is shown is no longer what lies in the file. */
function Stale() {
  const { path, is_gone, error, version } = run.value ?? {};
  if (version === null || !(is_gone || error)) return null;
  const [said, why] = is_gone
    ? ["deleted", `${path} is there no more. What is shown was read before.`]
    : ["cannot be read", `${path} has changed and cannot be read: ${error?.what}. What is shown was read before.`];
  return (
    <span class="cut-off" role="status" title={why}>
      {said}: shown as read before
    </span>
  );
}
