import type { ComponentChildren } from "preact";
import type { ErrorBody } from "../api/types";
import { Words } from "./Words";

/** What went wrong, where, and what to do about it. */
export function ErrorNotice({ error, onRetry }: { error: ErrorBody; onRetry?: () => void }) {
  return (
    <div class="notice error" role="alert">
      <p>
        <strong>
          <Words text={error.what} />
        </strong>
        {error.where && (
          <>
            {" "}
            <code>{error.where}</code>
          </>
        )}
      </p>
      {error.hint && (
        <p>
          <Words text={error.hint} />
        </p>
      )}
      {onRetry && (
        <button type="button" onClick={onRetry}>
          Try again
        </button>
      )}
    </div>
  );
}

/** Something takes a moment. */
export function Loading({ what = "Loading…" }: { what?: string }) {
  return (
    <p class="notice loading" role="status">
      <span class="spinner" aria-hidden="true" /> {what}
    </p>
  );
}

/** There is nothing to show, and why. */
export function Empty({ children }: { children: ComponentChildren }) {
  return <p class="notice empty">{children}</p>;
}
