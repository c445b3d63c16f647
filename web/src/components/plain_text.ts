// Every text on every page, made readable in one place, whichever component shows it.

import { type ComponentChildren, options, type VNode } from "preact";
import { printable } from "../format/printable";

/** What is shown or read out, beside what an element has in it. */
const SHOWN = ["title", "aria-label", "placeholder"];

type Props = Record<string, unknown> & { children?: ComponentChildren };

/** From now on every text and title is shown as `printable` has it. Addresses and what is typed stay as they are. */
export function showUnseen(): void {
  const before = options.vnode;
  options.vnode = (vnode: VNode<Props>) => {
    const { props } = vnode;
    if (props?.children !== undefined) props.children = readable(props.children);
    if (typeof vnode.type === "string") {
      for (const name of SHOWN) {
        const text = props[name];
        if (typeof text === "string") props[name] = printable(text);
      }
    }
    before?.(vnode);
  };
}

function readable(children: ComponentChildren): ComponentChildren {
  if (typeof children === "string") return printable(children);
  return Array.isArray(children) ? children.map(readable) : children;
}
