import { render } from "preact";
import { takeToken } from "./api/client";
import { App } from "./app";
import { showUnseen } from "./components/plain_text";
import { takeFramingEditor } from "./state/frame";
import { followAddress } from "./state/route";
import { followRuns } from "./state/runs";
import { followTheme } from "./state/theme";

takeToken();
takeFramingEditor();
showUnseen();
followAddress();
followTheme();
void followRuns();

const root = document.getElementById("app");
if (root) render(<App />, root);
