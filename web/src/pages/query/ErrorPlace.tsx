import type { ErrorBody } from "../../api/types";
import { ErrorNotice } from "../../components/Notice";
import { excerptAt, placeOf, stretchAt } from "./place";

interface Props {
  readonly error: ErrorBody;
  /** The query that was run. */
  readonly sql: string;
  /** Selects a part of it. */
  readonly onGo: (from: number, to: number) => void;
}

/** What is wrong with a query, its line with a mark below the place, and the way there. */
export function ErrorPlace({ error, sql, onGo }: Props) {
  const place = placeOf(error.where);
  if (!place) return <ErrorNotice error={error} />;
  const { line, before } = excerptAt(sql, place);
  return (
    <>
      <ErrorNotice error={error} />
      <p class="query-place">
        <code>{line}</code>
        <code aria-hidden="true" class="mark">
          {" ".repeat(before)}^
        </code>
      </p>
      <button type="button" onClick={() => onGo(...stretchAt(sql, place))}>
        Go to the error
      </button>
    </>
  );
}
