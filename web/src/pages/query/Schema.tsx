import type { QueryColumn, QuerySchema } from "../../api/types";
import { ErrorNotice, Loading } from "../../components/Notice";
import { Words } from "../../components/Words";
import { formatCount } from "../../format/units";
import type { Answer } from "../../state/answer";

interface Props {
  readonly schema: Answer<QuerySchema>;
  /** Runs an example. */
  readonly onExample: (sql: string) => void;
  /** Writes a name into the query. */
  readonly onName: (name: string) => void;
}

/** What there is to ask about: examples, tables with their columns, functions. */
export function Schema({ schema, onExample, onName }: Props) {
  if (schema.state === "failed") return <ErrorNotice error={schema.error} />;
  if (!schema.value) return <Loading what="Preparing the tables of this run…" />;
  const { examples, tables, functions } = schema.value;
  return (
    <>
      {examples.length > 0 && (
        <section aria-labelledby="query-examples">
          <h2 id="query-examples">Examples</h2>
          <ul class="query-examples">
            {examples.map(({ title, sql }) => (
              <li key={title}>
                <button type="button" title={sql} onClick={() => onExample(sql)}>
                  {title}
                </button>
              </li>
            ))}
          </ul>
        </section>
      )}
      <section aria-labelledby="query-tables">
        <h2 id="query-tables">Tables</h2>
        {tables.map(({ name, row, columns }) => (
          <details key={name} class="query-table">
            <summary>
              <code>{name}</code> <span class="dim">{formatCount(columns.length)} columns</span>
            </summary>
            <p>
              <Words text={row} />{" "}
              <button type="button" class="small" aria-label={`Insert ${name}`} onClick={() => onName(name)}>
                Insert
              </button>
            </p>
            <ul>
              {columns.map((column) => (
                <li key={column.name}>
                  <button
                    type="button"
                    class="name"
                    title={`Insert ${column.name}`}
                    onClick={() => onName(column.name)}
                  >
                    {column.name}
                  </button>{" "}
                  <span class="dim">{kindOf(column)}</span>
                  {column.doc && (
                    <span class="about">
                      <Words text={column.doc} />
                    </span>
                  )}
                </li>
              ))}
            </ul>
          </details>
        ))}
      </section>
      {functions.length > 0 && (
        <section aria-labelledby="query-functions">
          <h2 id="query-functions">Functions</h2>
          <details class="query-table">
            <summary>
              {formatCount(functions.length)} functions <span class="dim">beside those of SQL</span>
            </summary>
            <ul>
              {functions.map(({ name, call, doc }) => (
                <li key={call}>
                  <button type="button" class="name" title={`Insert ${name}`} onClick={() => onName(`${name}(`)}>
                    {call}
                  </button>
                  {doc && (
                    <span class="about">
                      <Words text={doc} />
                    </span>
                  )}
                </li>
              ))}
            </ul>
          </details>
        </section>
      )}
    </>
  );
}

/** What values of a column are: their unit where they have one, else their type. */
const kindOf = ({ unit, type }: QueryColumn): string => unit ?? type;
