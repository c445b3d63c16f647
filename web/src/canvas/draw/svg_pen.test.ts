import { expect, test } from "vitest";
import { escaped, SvgPen } from "./svg_pen";

const pen = () => new SvgPen("c", { font: "", measureText: (text) => ({ width: text.length }) });

test("text stays text, where its line is", () => {
  const drawn = pen();
  drawn.font = '600 12px "A b", serif';
  drawn.textBaseline = "middle";
  drawn.textAlign = "right";
  drawn.fillStyle = "#123456";
  drawn.fillText("<b>&\u0007", 10.001, 20);
  expect(drawn.text).toBe(
    '<text x="10" y="24.2" font-size="12" font-family="&quot;A b&quot;, serif" font-weight="600" text-anchor="end" ' +
      'fill="#123456">&lt;b&gt;&amp;\\x07</text>',
  );
});

test("what XML cannot have is not in it", () => {
  expect(escaped("a\u0000\ud800b\udc00\uffff🦀\u202e")).toBe("a\\x00\ufffdb\ufffd\ufffd🦀\\u202e");
});

test("what is clipped is in a group, which ends with what was saved", () => {
  const drawn = pen();
  drawn.save();
  drawn.beginPath();
  drawn.rect(0, 1, 2, 3);
  drawn.clip();
  drawn.fillStyle = "red";
  drawn.globalAlpha = 0.5;
  drawn.fillRect(1, 1, 4, 5);
  drawn.restore();
  drawn.fillRect(0, 0, 1, 1);
  drawn.fillRect(0, 0, -1, 1);
  drawn.fillStyle = "rgba(1, 2, 3, 0.25)";
  drawn.fillRect(0, 0, 1, 1);
  expect(drawn.text.split("\n")).toEqual([
    '<clipPath id="c0"><path d="M0 1h2v3h-2z"/></clipPath><g clip-path="url(#c0)">',
    '<rect x="1" y="1" width="4" height="5" fill="red" fill-opacity="0.5"/>',
    "</g>",
    '<rect x="0" y="0" width="1" height="1" fill="#000"/>',
    '<rect x="0" y="0" width="1" height="1" fill="rgb(1, 2, 3)" fill-opacity="0.25"/>',
  ]);
});

test("paths are filled and drawn along", () => {
  const drawn = pen();
  drawn.beginPath();
  drawn.moveTo(0, 0);
  drawn.lineTo(1, 2);
  drawn.bezierCurveTo(1, 2, 3, 4, 5, 6.789);
  drawn.lineWidth = 4;
  drawn.stroke();
  drawn.fill();
  expect(drawn.text.split("\n")).toEqual([
    '<path d="M0 0L1 2C1 2 3 4 5 6.79" fill="none" stroke="#000" stroke-width="4"/>',
    '<path d="M0 0L1 2C1 2 3 4 5 6.79" fill="#000"/>',
  ]);
});
