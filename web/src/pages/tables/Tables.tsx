import { Choices } from "../../components/Choices";
import { ErrorNotice } from "../../components/Notice";
import { codeLinks } from "../../components/table/links";
import { Table } from "../../components/table/Table";
import { analysisTitle } from "../../components/vocabulary";
import { Words } from "../../components/Words";
import { param, setParams } from "../../state/route";
import { analyses } from "../../state/runs";

/** Other tools by what the command calls them. */
const TOOLS: Readonly<Record<string, string>> = {
  tb: "TensorBoard",
  hta: "Holistic Trace Analysis",
  dfanalyzer: "DFAnalyzer",
  deepspeed: "DeepSpeed",
};

/** Every analysis as a table. */
export default function Tables() {
  const names = [...analyses.value.keys()];
  const name = param("analysis") ?? names[0] ?? "";
  const info = analyses.value.get(name);
  if (!info) return <ErrorNotice error={{ what: "there is no such analysis", where: name }} />;
  const group = param("group") ?? info.accepts.group_by[0] ?? null;
  const compat = param("compat") ?? "";
  return (
    <>
      <h1>All tables</h1>
      <div class="choices">
        <label class="choice">
          Analysis{" "}
          <select
            value={name}
            onChange={(event) => {
              const next = { analysis: event.currentTarget.value, group: null, compat: null };
              setParams({ ...next, sort: null, q: null, where: null, cols: null });
            }}
          >
            {names.map((name) => (
              <option key={name} value={name}>
                {analysisTitle(name)}
              </option>
            ))}
          </select>
        </label>
        {info.accepts.group_by.length > 1 && (
          <Choices
            label="Group by"
            name="group"
            value={group ?? ""}
            options={info.accepts.group_by.map((name) => [name, name.replaceAll("_", " ")])}
          />
        )}
        {info.accepts.compat.length > 0 && (
          <Choices
            label="As defined by"
            name="compat"
            value={compat}
            options={[["", "Stepscope"], ...info.accepts.compat.map((name) => [name, TOOLS[name] ?? name] as const)]}
          />
        )}
      </div>
      <p>
        <Words text={info.definition} />
      </p>
      <Table
        key={`${name} ${group} ${compat}`}
        analysis={name}
        title={analysisTitle(name)}
        query={[
          ["group_by", group === info.accepts.group_by[0] ? null : group],
          ["compat", compat],
        ]}
        height={22}
        linksOf={name === "source_lines" ? codeLinks : undefined}
      />
    </>
  );
}
