import { Choices } from "../Choices";

/** Where the first boxes of a tree are: at the top, as icicles hang, or at the bottom, as flames stand. The link keeps it. */
export function BoxesBegin({ isIcicle }: { isIcicle: boolean }) {
  return (
    <Choices
      label="Boxes begin"
      name="shape"
      value={isIcicle ? "icicle" : "flame"}
      options={[
        ["icicle", "at the top (icicle)"],
        ["flame", "at the bottom (flame)"],
      ]}
    />
  );
}
