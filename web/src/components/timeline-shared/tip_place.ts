// Where the tooltip stands: beside the pointer, inside of what it belongs to.

/** From the pointer to the tooltip, in CSS pixels. */
const GAP_PX = 14;

export interface Size {
  readonly width: number;
  readonly height: number;
}

/** Its left upper corner: to the right of the pointer and below it where there is room, else on the other side. */
export function tipPlace(pointer: { x: number; y: number }, tip: Size, room: Size): { left: number; top: number } {
  return { left: along(pointer.x, tip.width, room.width), top: along(pointer.y, tip.height, room.height) };
}

function along(at: number, size: number, room: number): number {
  if (at + GAP_PX + size <= room) return at + GAP_PX;
  if (at - GAP_PX - size >= 0) return at - GAP_PX - size;
  return Math.max(0, room - size);
}
