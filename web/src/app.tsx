import { useEffect } from "preact/hooks";
import { Patterns } from "./components/charts/Patterns";
import { OpenDefinition } from "./components/Definition";
import { printable } from "./format/printable";
import { findPage } from "./pages/registry";
import { followEditorLinks } from "./shell/editor_links";
import { FindingsBanner } from "./shell/FindingsBanner";
import { Header } from "./shell/Header";
import { Help } from "./shell/Help";
import { followKeys } from "./shell/keys";
import { Navigation } from "./shell/Navigation";
import { PageFrame } from "./shell/PageFrame";
import { Palette } from "./shell/Palette";
import { route } from "./state/route";
import { run } from "./state/runs";

/** The shell around every page. */
export function App() {
  useEffect(() => followKeys(), []);
  useEffect(() => followEditorLinks(), []);
  const title = findPage(route.value.page)?.title ?? "Stepscope";
  const name = run.value?.name;
  useEffect(() => {
    document.title = name ? `${title} – ${printable(name)} – Stepscope` : "Stepscope";
  }, [title, name]);
  return (
    <>
      <a class="skip" href="#main" onClick={toMain}>
        Skip to the page
      </a>
      <Patterns />
      <Header />
      <Navigation />
      <main id="main" tabIndex={-1}>
        <FindingsBanner />
        <PageFrame />
      </main>
      <Help />
      <Palette />
      <OpenDefinition />
    </>
  );
}

/** The address has the page's state behind `#`, so the link must not go there. */
function toMain(event: Event): void {
  event.preventDefault();
  document.getElementById("main")?.focus();
}
