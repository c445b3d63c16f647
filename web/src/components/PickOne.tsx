/** The most options to pick from: a choice of more is typed. */
export const MAX_OPTIONS = 300;

interface Props {
  readonly label: string;
  /** What is shown unless one is chosen. */
  readonly all: string;
  readonly value: string | undefined;
  readonly options: readonly string[];
  readonly onChange: (value: string | null) => void;
}

/** A choice of one of many, or of all. */
export function PickOne({ label, all, value, options, onChange }: Props) {
  // What a link asks for is shown even when the run does not have it: the page then says so.
  const shown = value === undefined || options.includes(value) ? options : [value, ...options];
  if (shown.length > MAX_OPTIONS) {
    return (
      <label>
        {label}{" "}
        <input
          type="text"
          inputMode="numeric"
          size={8}
          placeholder={all}
          value={value ?? ""}
          onChange={(event) => onChange(event.currentTarget.value.trim() || null)}
        />
      </label>
    );
  }
  return (
    <label>
      {label}{" "}
      <select value={value ?? ""} onChange={(event) => onChange(event.currentTarget.value || null)}>
        <option value="">{all}</option>
        {shown.map((option) => (
          <option key={option} value={option}>
            {option}
          </option>
        ))}
      </select>
    </label>
  );
}
