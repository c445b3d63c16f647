import { placeOf } from "../../components/links";

/** A line of a file. */
export interface SourcePlace {
  readonly file: string;
  readonly line: number;
}

/** Where the frames with a file are; a stack is `file(line): function` joined by `;`, the innermost first. */
export function placesOf(stack: string): SourcePlace[] {
  const places = stack.split(";").flatMap((frame) => placeOf(frame) ?? []);
  const isFirst = (place: SourcePlace, at: number) =>
    places.findIndex((other) => other.file === place.file && other.line === place.line) === at;
  return places.filter(isFirst);
}

/** Files of PyTorch itself, and of whatever else is installed. */
const INSTALLED = /(^|\/)(torch|site-packages|dist-packages)\//;

/** The places in the program itself; where a stack has none, all of them. */
export function ownPlaces(stack: string): SourcePlace[] {
  const places = placesOf(stack);
  const own = places.filter(({ file }) => !INSTALLED.test(file));
  return own.length > 0 ? own : places;
}
