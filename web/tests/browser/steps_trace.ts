// A small trace with steps, as PyTorch writes it.

const DIMS = [
  [64, 64],
  [64, 64],
];

/** A trace of steps that take `steps` microseconds: a module, an operator in another, and a kernel in each. */
export function traceOf(steps: readonly number[], kernel: string): string {
  let ts = 1000;
  const events = steps.flatMap((dur, step) => {
    const [start, pid, tid] = [ts, 1, 1];
    ts += dur;
    const event = (cat: string, name: string, from: number, dur: number, args: object = {}) => {
      return { ph: "X", cat, name, pid, tid, ts: start + from, dur, args };
    };
    const call = (id: number, parent: number | null) => ({
      "Python id": step * 10 + id,
      "Python parent id": parent === null ? null : step * 10 + parent,
      "Python module id": id,
    });
    const linked = { correlation: step + 1, "External id": step + 1 };
    return [
      event("user_annotation", `ProfilerStep#${step}`, 0, dur),
      event("python_function", "nn.Module: Net_0", 10, dur - 200, call(1, null)),
      event("python_function", "nn.Module: Linear_0", 20, dur - 300, call(2, 1)),
      event("cpu_op", "aten::linear", 30, dur - 400, { "External id": step + 1 }),
      event("cpu_op", "aten::mm", 40, dur - 500, { "Input Dims": DIMS, "Input type": ["float", "float"] }),
      event("cuda_runtime", "cudaLaunchKernel", 50, 10, linked),
      { ...event("kernel", kernel, 100, dur / 2, { ...linked, device: 0, stream: 7 }), pid: 0, tid: 7 },
    ];
  });
  return JSON.stringify({ schemaVersion: 1, deviceProperties: [{ id: 0, name: "a device" }], traceEvents: events });
}
