import type { ComponentChildren } from "preact";
import { runPath, withQuery } from "../../api/paths";
import type { Envelope, Row } from "../../api/types";
import { Choices } from "../../components/Choices";
import { Figure } from "../../components/charts/Figure";
import { Pointed, usePointed } from "../../components/charts/Pointed";
import { useWidth } from "../../components/charts/width";
import { Definition } from "../../components/Definition";
import { timelineSearch } from "../../components/links";
import { Empty, ErrorNotice, Loading } from "../../components/Notice";
import { Table } from "../../components/table/Table";
import { Words } from "../../components/Words";
import { formatCell } from "../../format/cell";
import { clipped } from "../../format/printable";
import { formatBytesPerS, formatCount, formatLarge, formatPlain, formatRatio } from "../../format/units";
import { useAnswer } from "../../state/answer";
import { param, selection } from "../../state/route";
import { detail, runId } from "../../state/runs";
import {
  BOUNDS,
  boundOf,
  decadesOf,
  type Product,
  pointsOf,
  productsOf,
  type Roof,
  type RooflinePoint,
  roofsOf,
  shareOf,
} from "./roofline";

const GROUPS = [
  ["name", "operator"],
  ["shapes", "operator and input shapes"],
  ["module", "operator and module"],
  ["category", "category"],
  ["kernel", "kernel"],
] as const;

/** Why there are no points, and what would record them. */
const NO_SHAPES =
  "Which operations operators do is not known. The shapes of their inputs say it: `stepscope record --shapes` records them, and torch.profiler with `record_shapes=True`.";

/** Points that are drawn: those with the most device time. */
const DRAWN = 200;
const HEIGHT = 380;
const LEFT = 74;
const BOTTOM = 34;
const TOP = 12;
const RIGHT = 26;
/** Room for the longest name of a roof. */
const NAME_ROOM = 290;

/** How near operators or kernels come to what the device could do: as a picture, and as a table. */
export function Roofline({ devices }: { devices: readonly Row[] }) {
  const products = productsOf(devices);
  const product = products.find(({ name }) => name === param("roofs")) ?? products[0];
  const device = product?.device;
  const group = GROUPS.find(([name]) => name === param("group"))?.[0] ?? "name";
  const query = [["group_by", group === "name" ? null : group]] as const;
  const path = withQuery(runPath(runId.value, "analyses/roofline"), [
    ...selection.value,
    ...query,
    ["sort", "device_ns"],
    ["limit", DRAWN],
  ]);
  const answer = useAnswer<Envelope>(path, detail.value?.version ?? 0);
  if (answer.state === "failed") return <ErrorNotice error={answer.error} />;
  if (!answer.value) return <Loading what="Computing the roofline…" />;
  const points = pointsOf(answer.value.results);
  return (
    <>
      <section aria-label="Roofline" aria-busy={answer.state === "loading"}>
        <h2>
          Roofline <Definition analysis="roofline" />
        </h2>
        <Choices label="Group by" name="group" value={group} options={GROUPS} />
        {product && products.length > 1 && (
          <Choices label="Roofs of" name="roofs" value={product.name} options={products.map(optionOf)} />
        )}
        {products.length > 1 && (
          <p class="dim">
            The devices are of {products.length} products. A point is of the work on all of them, and its colour of the
            roofs of those that it ran on.
          </p>
        )}
        {points.length > 0 && device ? (
          <Picture points={points} device={device} />
        ) : (
          <Empty>
            <Words text={NO_SHAPES} />
          </Empty>
        )}
      </section>
      <Table
        key={group}
        analysis="roofline"
        title="Roofline as a table"
        prefix="r."
        height={10}
        query={query}
        hidden={["flops", "bytes", "device_ratio"]}
        linksOf={(row) =>
          typeof row.name === "string" ? [{ label: "On the timeline", href: timelineSearch(row.name) }] : []
        }
      />
    </>
  );
}

const optionOf = ({ name, count }: Product) =>
  [name, `${clipped(name, 60)} (${formatCount(count)} ${count === 1 ? "device" : "devices"})`] as const;

function Picture({ points, device }: { points: readonly RooflinePoint[]; device: Row }) {
  const [box, width] = useWidth<HTMLDivElement>();
  const pointed = usePointed();
  const bandwidth = Number(device.memory_bytes_per_s ?? 0);
  const roofs = roofsOf(device);
  const top = Math.max(0, ...roofs.map((roof) => roof.flops_per_s));
  const ridges = bandwidth > 0 ? roofs.map((roof) => roof.flops_per_s / bandwidth) : [];
  const xs = decadesOf([...points.map((point) => point.x), ...ridges]);
  const ys = decadesOf([...points.map((point) => point.y), top]);
  const x = (value: number) => LEFT + shareOf(value, xs) * (width - LEFT - RIGHT);
  const y = (value: number) => TOP + (1 - shareOf(value, ys)) * (HEIGHT - TOP - BOTTOM);
  const most = Math.max(...points.map((point) => point.device_ns));
  const decades = ({ from, to }: { from: number; to: number }) =>
    Array.from({ length: to - from + 1 }, (_, at) => 10 ** (from + at));
  const ridgeOf = (roof: Roof) => Math.max(10 ** xs.from, bandwidth > 0 ? roof.flops_per_s / bandwidth : 0);
  // Where the slope of memory comes into the picture.
  const slope = bandwidth > 0 ? Math.max(10 ** xs.from, 10 ** ys.from / bandwidth) : 0;
  return (
    <Figure
      name="roofline"
      title={<span>{String(device.name ?? "A device without a known name")}: operations per second and per byte</span>}
    >
      <div ref={box}>
        <svg class="chart roofline" width={width} height={HEIGHT}>
          <title>Operations per second by operations per byte</title>
          {decades(xs).map((value) => (
            <g key={value}>
              <line class="grid" x1={x(value)} x2={x(value)} y1={TOP} y2={HEIGHT - BOTTOM} />
              <text class="tick" x={x(value)} y={HEIGHT - BOTTOM + 14} text-anchor="middle">
                {value >= 1 ? formatLarge(value) : String(value)}
              </text>
            </g>
          ))}
          {decades(ys).map((value) => (
            <g key={value}>
              <line class="grid" x1={LEFT} x2={width - RIGHT} y1={y(value)} y2={y(value)} />
              <text class="tick" x={LEFT - 6} y={y(value) + 4} text-anchor="end">
                {formatLarge(value)}
              </text>
            </g>
          ))}
          <text class="tick" x={width - RIGHT} y={HEIGHT - 4} text-anchor="end">
            operations per byte →
          </text>
          {roofs.map((roof) => (
            <line
              key={roof.words}
              class="roof"
              x1={x(ridgeOf(roof))}
              x2={width - RIGHT}
              y1={y(roof.flops_per_s)}
              y2={y(roof.flops_per_s)}
            />
          ))}
          {bandwidth > 0 && top > 0 && (
            <line class="roof" x1={x(slope)} y1={y(slope * bandwidth)} x2={x(top / bandwidth)} y2={y(top)} />
          )}
          {points.map((point) => {
            const said = wordsOf(point);
            const say = () => {
              pointed.value = said;
            };
            return (
              <a key={said} href={timelineSearch(point.name)} aria-label={said} onFocus={say} onPointerEnter={say}>
                <circle
                  class={`roofline-point class-${boundOf(point.row).colour}`}
                  cx={x(point.x)}
                  cy={y(point.y)}
                  r={4 + 10 * Math.sqrt(point.device_ns / most)}
                />
              </a>
            );
          })}
          {roofs.map((roof) => (
            <RoofName key={roof.words} x={x(ridgeOf(roof))} y={y(roof.flops_per_s)}>
              {roof.words}: {formatLarge(roof.flops_per_s)} operations/s
            </RoofName>
          ))}
          {bandwidth > 0 && top > 0 && (
            <RoofName x={(x(slope) + x(top / bandwidth)) / 2} y={(y(slope * bandwidth) + y(top)) / 2}>
              memory: {formatBytesPerS(bandwidth)}
            </RoofName>
          )}
        </svg>
        <Pointed words={pointed} hint="Point at one to read it; click to find it on the timeline." />
      </div>
      <ul class="legend">
        {BOUNDS.filter((bound) => points.some(({ row }) => boundOf(row) === bound)).map(({ colour, words }) => (
          <li key={colour}>
            <svg width="14" height="14" aria-hidden="true">
              <circle class={`class-${colour}`} cx="7" cy="7" r="5" />
            </svg>{" "}
            {words}
          </li>
        ))}
        <li class="dim">The larger a point, the more device time.</li>
      </ul>
    </Figure>
  );
}

/** What a roof is called: at its left, where no point is, as long as there is room; else on it. */
function RoofName({ x, y, children }: { x: number; y: number; children: ComponentChildren }) {
  const isBeside = x - LEFT > NAME_ROOM;
  return (
    <text class="tick" x={isBeside ? x - 8 : x + 8} y={y - 5} text-anchor={isBeside ? "end" : "start"}>
      {children}
    </text>
  );
}

/** What a point says. */
function wordsOf({ name, row, x, y }: RooflinePoint): string {
  const parts = [
    `${clipped(name, 200)}${typeof row.shapes === "string" ? ` ${clipped(row.shapes, 200)}` : ""}`,
    `${formatCell("ns", row.device_ns)} on the device`,
    `${formatLarge(Math.round(y))} operations/s`,
    `${formatPlain(x)} per byte`,
  ];
  if (row.roofline_ratio !== null) parts.push(`${formatRatio(Number(row.roofline_ratio))} of its roofline`);
  return parts.join(" · ");
}
