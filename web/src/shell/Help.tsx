import { Dialog } from "../components/Dialog";
import { isHelpOpen, KEYS } from "./keys";

/** Every key, by where it works. */
export function Help() {
  const close = () => {
    isHelpOpen.value = false;
  };
  return (
    <Dialog title="Keys" isOpen={isHelpOpen.value} onClose={close}>
      {KEYS.map(({ where, keys }) => (
        <section key={where}>
          <h3>{where}</h3>
          <dl class="keys">
            {keys.map(([key, does]) => (
              <div key={key}>
                <dt>
                  <kbd>{key}</kbd>
                </dt>
                <dd>{does}</dd>
              </div>
            ))}
          </dl>
        </section>
      ))}
    </Dialog>
  );
}
