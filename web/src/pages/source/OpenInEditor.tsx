import { useAnswer } from "../../state/answer";
import { chooseEditor, chosenTemplate, EDITORS, editor, editorUrl } from "../../state/editor";

/** What the server says of itself. */
interface About {
  readonly version: string;
  /** What opens an editor, with `{file}` and `{line}` in it. */
  readonly editor: string | null;
}

interface Props {
  /** Where the file is. */
  readonly path: string;
  readonly line: number;
}

/** Opens a line in an editor: the one that the command was told, or another that is chosen here. */
export function OpenInEditor({ path, line }: Props) {
  const about = useAnswer<About>("api/about", 0);
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
