// Runs in the webview: opens the viewer in the frame, and passes on which line a person wants to see.

import { framedAddress } from "./address";
import { openRequestIn } from "./open_message";

declare function acquireVsCodeApi(): { postMessage(message: unknown): void };

const { address = "", nonce = "" } = document.body.dataset;
const frame = document.querySelector("iframe");
if (frame) {
  const editor = acquireVsCodeApi();
  const origin = new URL(address).origin;
  addEventListener("message", (event) => {
    const request = openRequestIn(event, { origin, source: frame.contentWindow, nonce });
    if (request) editor.postMessage(request);
  });
  frame.src = framedAddress(address, self.origin, nonce);
}
