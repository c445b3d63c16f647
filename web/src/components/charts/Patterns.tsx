import { type ClassName, PARTS, type Texture } from "../../classes";

/** What is drawn on a tile of 8 × 8 pixels. */
export const STROKES: Record<Texture, string> = {
  plain: "",
  rising: "M-2 2L2 -2M0 8L8 0M6 10L10 6",
  falling: "M-2 6L2 10M0 0L8 8M6 -2L10 2",
  upright: "M2 0V8M6 0V8",
  level: "M0 2H8M0 6H8",
  dots: "M2 2h1M6 6h1",
  cross: "M0 4H8M4 0V8",
  dense: "M0 1H8M0 4H8M0 7H8",
};

/** The name of the fill with this colour and texture. */
export const fillOf = (colour: ClassName, texture: Texture): string => `url(#fill-${colour}-${texture})`;

/** The name of a texture by itself, to lie on a colour. */
export const hatchOf = (texture: Texture): string => `url(#hatch-${texture})`;

/** Textures that are used by themselves. */
const HATCHES: readonly Texture[] = ["rising", "falling", "dots", "cross"];

/** The fills that charts refer to, once in the document: a colour with a texture, so that colour alone says nothing. */
export function Patterns() {
  const used = new Map(Object.values(PARTS).map((look) => [fillOf(look.colour, look.texture), look]));
  return (
    <svg class="fills" aria-hidden="true" focusable="false" width="0" height="0">
      <defs>
        {[...used.values()].map(({ colour, texture }) => (
          <pattern
            key={`${colour}-${texture}`}
            id={`fill-${colour}-${texture}`}
            width="8"
            height="8"
            patternUnits="userSpaceOnUse"
          >
            <rect width="8" height="8" class={`class-${colour}`} />
            {STROKES[texture] && <path d={STROKES[texture]} class={texture === "dots" ? "texture dots" : "texture"} />}
          </pattern>
        ))}
        {HATCHES.map((texture) => (
          <pattern key={texture} id={`hatch-${texture}`} width="8" height="8" patternUnits="userSpaceOnUse">
            <path d={STROKES[texture]} class={texture === "dots" ? "hatch dots" : "hatch"} />
          </pattern>
        ))}
      </defs>
    </svg>
  );
}
