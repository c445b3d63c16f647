// The page around the viewer: a frame that may open the viewer and nothing else.

const STYLE = `html, body { height: 100%; margin: 0; padding: 0 }
iframe { border: 0; display: block; height: 100%; width: 100% }
body.vscode-light iframe, body.vscode-high-contrast-light iframe { color-scheme: light }
body.vscode-dark iframe, body.vscode-high-contrast:not(.vscode-high-contrast-light) iframe { color-scheme: dark }
main { padding: 1em 2em; max-width: 60em }
p { overflow-wrap: anywhere }`;

/** What the page needs of the editor. */
export interface PageParts {
  /** Where its script is. */
  readonly script: string;
  /** Of the policy: what the page itself has brought. */
  readonly policyNonce: string;
}

/** The viewer in a frame. `nonce` is what the viewer's messages must have. */
export function viewerPage(address: string, nonce: string, { script, policyNonce }: PageParts): string {
  const policy = `default-src 'none'; frame-src ${new URL(address).origin}; ${ownParts(policyNonce)}`;
  const frame = '<iframe title="Stepscope" allow="clipboard-write"></iframe>';
  return page(policy, policyNonce, {
    attributes: ` data-address="${escaped(address)}" data-nonce="${escaped(nonce)}"`,
    content: `${frame}\n<script nonce="${escaped(policyNonce)}" src="${escaped(script)}"></script>`,
  });
}

/** Some lines of text instead. */
export function textPage(lines: readonly string[], policyNonce: string): string {
  const content = `<main role="status">${lines.map((line) => `<p>${escaped(line)}</p>`).join("")}</main>`;
  return page(`default-src 'none'; ${ownParts(policyNonce)}`, policyNonce, { attributes: "", content });
}

const ownParts = (nonce: string): string => `script-src 'nonce-${nonce}'; style-src 'nonce-${nonce}'`;

function page(policy: string, nonce: string, body: { attributes: string; content: string }): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${escaped(policy)}">
<style nonce="${escaped(nonce)}">${STYLE}</style>
<title>Stepscope</title>
</head>
<body${body.attributes}>
${body.content}
</body>
</html>
`;
}

/** Text as it stands in markup, also within quotes. */
function escaped(text: string): string {
  const entities: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };
  return text.replace(/[&<>"]/g, (character) => entities[character] ?? character);
}
