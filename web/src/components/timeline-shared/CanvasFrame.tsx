import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { Elements } from "../../canvas/surface";
import { ErrorNotice } from "../Notice";
import type { CanvasState } from "./canvas_state";
import { Labels } from "./Labels";
import { Tooltip } from "./Tooltip";
import "./timeline.css";

interface Props {
  readonly state: CanvasState;
  /** Draws on the elements until the function that it returns is called. Another function draws anew. */
  readonly draw: (elements: Elements) => () => void;
  /** What the canvas and the minimap are called. */
  readonly label: string;
  readonly mapLabel: string;
}

/** A canvas with the minimap above it, and the labels of its rows beside it. */
export function CanvasFrame({ state, draw, label, mapLabel }: Props): ComponentChildren {
  const canvas = useRef<HTMLCanvasElement>(null);
  const minimap = useRef<HTMLCanvasElement>(null);
  const scroller = useRef<HTMLDivElement>(null);
  const spacer = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!canvas.current || !minimap.current || !scroller.current || !spacer.current) return;
    return draw({
      canvas: canvas.current,
      minimap: minimap.current,
      scroller: scroller.current,
      spacer: spacer.current,
    });
  }, [draw]);
  return (
    <>
      {state.error.value && <ErrorNotice error={state.error.value} />}
      <canvas ref={minimap} class="timeline-map" role="img" aria-label={mapLabel} />
      <div class="timeline-scroll" ref={scroller}>
        <div class="timeline-stage">
          <Labels rows={state.rows} />
          <div class="timeline-canvas">
            <canvas ref={canvas} tabIndex={0} role="application" aria-label={label} aria-busy={state.isLoading.value} />
            <Tooltip hovered={state.hovered.value} counter={state.counter} detailsOf={state.detailsOf} />
          </div>
        </div>
        <div ref={spacer} aria-hidden="true" />
      </div>
    </>
  );
}
