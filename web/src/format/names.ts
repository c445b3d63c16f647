// Names of functions where there is little room.

/** Characters that are looked at: of a longer name none of what is left out would have been seen. */
const MOST = 5_000;

/**
 * A kernel's name without what tells least: the word `void` before it, namespaces, and the parameters behind it, which repeat
 * the arguments of its template. Any other name is as it was.
 */
export function shortName(name: string): string {
  if (!name.startsWith("void ") || name.length > MOST) return name;
  const bare = withoutParameters(name.slice("void ".length))
    .replaceAll("(anonymous namespace)::", "")
    .replace(/\b[A-Za-z_]\w*::(?=[A-Za-z_])/g, "");
  return bare === "" ? name : bare;
}

/** A function up to the parenthesis that the last one closes. */
function withoutParameters(name: string): string {
  let depth = 0;
  for (let at = name.length - 1; name.endsWith(")") && at >= 0; at--) {
    if (name[at] === ")") depth++;
    else if (name[at] === "(" && --depth === 0) return name.slice(0, at);
  }
  return name;
}
