import { chooseEditor, chosenTemplate, EDITORS, editor, editorUrl } from "../../state/editor";
import { framingEditor, openInFramingEditor } from "../../state/frame";
import { about } from "../../state/runs";

interface Props {
  /** Where the file is. */
  readonly path: string;
  readonly line: number;
}

/** Opens a line in an editor: the one around this page, the one that the command was told, or another chosen here. */
export function OpenInEditor(props: Props) {
  return framingEditor.value === null ? <ByAddress {...props} /> : <InFrame {...props} />;
}

/** The editor around this page looks for the file itself, also when its path is not whole. */
function InFrame({ path, line }: Props) {
  return (
    <button type="button" onClick={() => openInFramingEditor(path, line)}>
      Open line {line} in the editor
    </button>
  );
}

function ByAddress({ path, line }: Props) {
  const template = chosenTemplate() ?? about.value?.editor ?? null;
  const url = template === null ? null : editorUrl(template, path, line);
  if (!path.startsWith("/")) return null;
  return (
    <span class="open-in-editor">
      {url !== null && <a href={url}>Open line {line} in the editor</a>}
      <label class="choice">
        Editor{" "}
        <select value={editor.value} onChange={(event) => chooseEditor(event.currentTarget.value)}>
          <option value="">as --editor says</option>
          {Object.entries(EDITORS).map(([name, { words }]) => (
            <option key={name} value={name}>
              {words}
            </option>
          ))}
        </select>
      </label>
    </span>
  );
}
