import { useRef, useState } from "preact/hooks";
import type { Column } from "../../api/types";
import { exactCell, shortCell } from "../../format/cell";
import { docWords } from "../table/words";
import type { Module } from "./tree";

interface Props {
  /** What a row is. */
  readonly noun: string;
  /** The column that says of what kind a row is. */
  readonly kind: string;
  readonly columns: readonly Column[];
  readonly modules: readonly Module[];
  readonly open: ReadonlySet<string>;
  readonly onToggle: (module: Module) => void;
  readonly onChoose: (module: Module) => void;
  /** Shows each of the rows that one stands for. */
  readonly onApart?: (module: Module) => void;
}

/** The tree as a table: numbers beside each row, what it calls below it. */
export function TreeTable({ noun, kind, columns, modules, open, onToggle, onChoose, onApart }: Props) {
  const body = useRef<HTMLTableSectionElement>(null);
  const [active, setActive] = useState(0);
  const at = Math.min(active, modules.length - 1);
  const focus = (index: number) => {
    if (!modules[index]) return;
    setActive(index);
    body.current?.querySelectorAll("tr")[index]?.focus();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const module = modules[at];
    if (!module || !(event.target instanceof HTMLTableRowElement)) return;
    const isOpen = open.has(module.path);
    if (event.key === "ArrowDown") focus(at + 1);
    else if (event.key === "ArrowUp") focus(at - 1);
    else if (event.key === "Home") focus(0);
    else if (event.key === "End") focus(modules.length - 1);
    else if (event.key === "ArrowRight" && module.children.length > 0) isOpen ? focus(at + 1) : onToggle(module);
    else if (event.key === "ArrowLeft") {
      if (isOpen) onToggle(module);
      else if (module.parent) focus(modules.indexOf(module.parent));
    } else if (event.key === "Enter") onChoose(module);
    else return;
    event.preventDefault();
  };
  return (
    <div class="table-scroll tree">
      <table role="treegrid" aria-label={`Tree of ${noun}s`} onKeyDown={onKeyDown}>
        <thead>
          <tr>
            <th scope="col" class="tree-name">
              {noun}
            </th>
            {columns.map((column) => (
              <th key={column.name} scope="col" class="number" title={docWords(column)}>
                {column.label}
              </th>
            ))}
          </tr>
        </thead>
        <tbody ref={body}>
          {modules.map((module, index) => {
            const isOpen = open.has(module.path);
            const hasChildren = module.children.length > 0;
            return (
              <tr
                key={module.path}
                aria-level={module.depth + 1}
                aria-expanded={hasChildren ? isOpen : undefined}
                tabIndex={index === at ? 0 : -1}
                onFocus={() => setActive(index)}
                onClick={() => onChoose(module)}
              >
                <td class="tree-name" title={module.path}>
                  <span class="indent" style={{ width: `${module.depth * 1.1}rem` }} />
                  <button
                    type="button"
                    class="twist"
                    tabIndex={-1}
                    disabled={!hasChildren}
                    aria-label={`${isOpen ? "Close" : "Open"} ${module.name}`}
                    onClick={(event) => {
                      event.stopPropagation();
                      onToggle(module);
                    }}
                  >
                    {hasChildren ? (isOpen ? "▾" : "▸") : "·"}
                  </button>
                  {module.name}
                  {typeof module.row[kind] === "string" && <span class="module-class">{module.row[kind]}</span>}
                  {onApart && typeof module.row.alike === "string" && (
                    <button
                      type="button"
                      class="link apart"
                      aria-label={`Show each of ${module.name}`}
                      onClick={(event) => {
                        event.stopPropagation();
                        onApart(module);
                      }}
                    >
                      each
                    </button>
                  )}
                </td>
                {columns.map((column) => (
                  <td key={column.name} class="number" title={exactCell(column.unit, module.row[column.name])}>
                    {shortCell(column.unit, module.row[column.name])}
                  </td>
                ))}
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}
