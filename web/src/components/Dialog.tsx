import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";

interface Props {
  readonly title: string;
  readonly isOpen: boolean;
  readonly onClose: () => void;
  readonly children: ComponentChildren;
}

/** The browser's own modal dialog: it keeps the focus inside, and Esc closes it. */
export function Dialog({ title, isOpen, onClose, children }: Props) {
  const dialog = useRef<HTMLDialogElement>(null);
  // The browser says later that it was closed, when it may be open again: what was closed here is not said again.
  const closedHere = useRef(0);
  // Before the next key comes: what is typed after the key that opens it is typed into it.
  useLayoutEffect(() => {
    if (isOpen) dialog.current?.showModal();
    else if (dialog.current?.open) {
      closedHere.current++;
      dialog.current.close();
    }
  }, [isOpen]);
  const onClosed = () => {
    if (closedHere.current > 0) closedHere.current--;
    else onClose();
  };
  // The browser would empty a field first, and say later that the dialog is closed.
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key !== "Escape") return;
    event.preventDefault();
    onClose();
  };
  return (
    <dialog ref={dialog} aria-label={title} onClose={onClosed} onKeyDown={onKeyDown}>
      {isOpen && (
        <>
          <header class="dialog-head">
            <h2>{title}</h2>
            <button type="button" onClick={onClose} aria-label="Close">
              ×
            </button>
          </header>
          {children}
        </>
      )}
    </dialog>
  );
}
