import { setParams } from "../state/route";

interface Props {
  readonly label: string;
  /** The parameter that the choice stands in. */
  readonly name: string;
  readonly value: string;
  readonly options: readonly (readonly [value: string, words: string])[];
}

/** A choice of a few, in the address. The first is what is shown unasked. */
export function Choices({ label, name, value, options }: Props) {
  return (
    <label class="choice">
      {label}{" "}
      <select
        value={value}
        onChange={(event) => {
          const next = event.currentTarget.value;
          setParams({ [name]: next === options[0]?.[0] ? null : next });
        }}
      >
        {options.map(([option, words]) => (
          <option key={option} value={option}>
            {words}
          </option>
        ))}
      </select>
    </label>
  );
}
