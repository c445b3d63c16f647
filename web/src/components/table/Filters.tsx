import { useState } from "preact/hooks";
import type { Column } from "../../api/types";
import { Menu } from "../Menu";
import { type Condition, formatCondition, OPERATORS, type Operator } from "./choices";
import { kindName, kindWords } from "./words";

interface Props {
  readonly columns: readonly Column[];
  readonly where: readonly Condition[];
  readonly onChange: (where: readonly Condition[]) => void;
}

/** The conditions that rows meet, and a form that adds one. */
export function Filters({ columns, where, onChange }: Props) {
  const [column, setColumn] = useState(columns[0]?.name ?? "");
  const [operator, setOperator] = useState<Operator>("has");
  const [value, setValue] = useState("");
  const unit = columns.find((known) => known.name === column)?.unit;
  const add = (event: Event) => {
    event.preventDefault();
    onChange([...where, { column, operator, value: kindName(column, value.trim()) }]);
    setValue("");
  };
  return (
    <>
      <Menu label="Filter">
        <form class="filter" onSubmit={add}>
          <label>
            Column
            <select value={column} onChange={(event) => setColumn(event.currentTarget.value)}>
              {columns.map((known) => (
                <option key={known.name} value={known.name}>
                  {known.label}
                </option>
              ))}
            </select>
          </label>
          <label>
            Compared
            <select value={operator} onChange={(event) => setOperator(event.currentTarget.value as Operator)}>
              {Object.entries(OPERATORS).map(([name, sign]) => (
                <option key={name} value={name}>
                  {sign}
                </option>
              ))}
            </select>
          </label>
          <label>
            {unit === "ns" || unit === "bytes" ? `Value in ${unit}` : "Value"}
            <input value={value} required onInput={(event) => setValue(event.currentTarget.value)} />
          </label>
          <button type="submit">Add</button>
        </form>
      </Menu>
      {where.map((condition) => {
        const label = columns.find((known) => known.name === condition.column)?.label ?? condition.column;
        const words = `${label} ${OPERATORS[condition.operator]} ${kindWords(condition.column, condition.value)}`;
        return (
          <button
            key={formatCondition(condition)}
            type="button"
            class="chip"
            aria-label={`Remove the filter ${words}`}
            onClick={() => onChange(where.filter((known) => known !== condition))}
          >
            {words} <span aria-hidden="true">×</span>
          </button>
        );
      })}
    </>
  );
}
