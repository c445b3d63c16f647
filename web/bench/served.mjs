// The command as a person starts it, and clients that ask it.

import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { Agent, request } from "node:http";

/** Starts `stepscope view` on some inputs. */
export async function serve(command, inputs) {
  const begin = performance.now();
  const child = spawn(command, ["view", "--no-browser", ...inputs], { stdio: ["ignore", "pipe", "pipe"] });
  const ended = new Promise((resolve) => child.on("close", resolve));
  let complaints = "";
  child.stderr.on("data", (data) => {
    complaints += data;
  });
  const url = await new Promise((resolve, reject) => {
    let said = "";
    child.stdout.on("data", (data) => {
      said += data;
      if (said.includes("\n")) resolve(said.trim());
    });
    child.on("error", reject);
    child.on("close", (code) => reject(new Error(`${command} ended with ${code}: ${complaints}`)));
  });
  return {
    url,
    begin,
    pid: child.pid,
    stop: () => {
      child.kill("SIGTERM");
      return ended;
    },
  };
}

/** Memory of a process now and at its peak, in bytes; null where the system does not say. */
export function memoryOf(pid) {
  let status;
  try {
    status = readFileSync(`/proc/${pid}/status`, "utf8");
  } catch {
    return null;
  }
  const bytes = (name) => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, "m").exec(status)?.[1]) * 1024;
  return { resident: bytes("VmRSS"), peak: bytes("VmHWM") };
}

/** How long a process has worked so far, in ms, however many others wanted its processors; NaN where nobody says. */
export function cpuOf(pid) {
  let status;
  try {
    status = readFileSync(`/proc/${pid}/stat`, "utf8");
  } catch {
    return Number.NaN;
  }
  // Behind the name: state is the first, times in the program and in the kernel are the 12th and 13th, in 10 ms.
  const [user, system] = status
    .slice(status.lastIndexOf(")") + 2)
    .split(" ")
    .slice(11, 13);
  return (Number(user) + Number(system)) * 10;
}

/** Who asks the server, over one connection at a time that stays open. */
export class Client {
  #agent = new Agent({ keepAlive: true, maxSockets: 1 });

  constructor(url) {
    const { origin, pathname, searchParams } = new URL(url);
    this.root = `${origin}${pathname}`;
    this.headers = {
      Authorization: `Bearer ${searchParams.get("token")}`,
      "Accept-Encoding": "gzip, deflate, br, zstd",
    };
  }

  /** An answer as it came, packed or not, and how long it took: all of it here, and what the server says of its part. */
  get(path) {
    const begin = performance.now();
    return new Promise((resolve, reject) => {
      const asking = request(`${this.root}api/${path}`, { agent: this.#agent, headers: this.headers }, (response) => {
        const pieces = [];
        response.on("data", (piece) => pieces.push(piece));
        response.on("error", reject);
        response.on("end", () => {
          const body = Buffer.concat(pieces);
          const server_ms = Number(/dur=([\d.]+)/.exec(response.headers["server-timing"] ?? "")?.[1] ?? Number.NaN);
          resolve({
            status: response.statusCode,
            headers: response.headers,
            body,
            ms: performance.now() - begin,
            server_ms,
          });
        });
      });
      asking.on("error", reject);
      asking.end();
    });
  }

  /** The answer as JSON, without packing: for what is not measured. */
  async json(path) {
    const response = await fetch(`${this.root}api/${path}`, { headers: { Authorization: this.headers.Authorization } });
    // A run that is still being read is answered with 202 or 409.
    if (response.status !== 200)
      throw Object.assign(new Error(`${path}: ${await response.text()}`), { status: response.status });
    return response.json();
  }

  /** The answer, once the run is read. */
  async ready(path) {
    for (;;) {
      try {
        return await this.json(path);
      } catch (error) {
        if (error.status !== 202 && error.status !== 409) throw error;
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
    }
  }

  close() {
    this.#agent.destroy();
  }
}
