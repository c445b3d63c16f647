// A small trace with call stacks, as `torch.profiler` writes it, and the program that it is of.

/** Lines of a program; those that the trace names are 8 and 4. */
export const PROGRAM = `import torch

def forward(model, batch):
    return model(batch)

def train(model, batches):
    for batch in batches:
        loss = forward(model, batch)
        loss.backward()
`;

/** Times in microseconds. Line 4 calls 80 of 100 µs; line 8 calls them through it, and 20 by itself. */
export function sampleTrace(): string {
  const op = (name: string, ts: number, dur: number, stack: string, id: number) => ({
    ph: "X",
    cat: "cpu_op",
    name,
    pid: 7,
    tid: 7,
    ts,
    dur,
    args: { "External id": id, "Call stack": stack },
  });
  const inner = "train.py(4): forward;train.py(8): train";
  const traceEvents = [
    { ph: "X", cat: "user_annotation", name: "ProfilerStep#1", pid: 7, tid: 7, ts: 1000, dur: 50, args: {} },
    { ph: "X", cat: "user_annotation", name: "ProfilerStep#2", pid: 7, tid: 7, ts: 1050, dur: 150, args: {} },
    op("aten::mm", 1000, 40, inner, 1),
    op("aten::mm", 1050, 40, inner, 2),
    op("aten::add", 1100, 20, "train.py(8): train", 3),
  ];
  return JSON.stringify({ schemaVersion: 1, displayTimeUnit: "ms", traceEvents });
}
