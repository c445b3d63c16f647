import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { ApiError, ask, takeToken, tokenIn } from "./client";

const storage = new Map<string, string>();
beforeEach(() => {
  storage.clear();
  vi.stubGlobal("localStorage", {
    getItem: (key: string) => storage.get(key) ?? null,
    setItem: (key: string, value: string) => storage.set(key, value),
  });
});
afterEach(() => {
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

const answer = (status: number, body: unknown) => new Response(JSON.stringify(body), { status });
const loading = () => answer(409, { error: { what: "the run is still being read" } });

test("what is still being read is asked for again", async () => {
  vi.useFakeTimers();
  const answers = [loading(), answer(202, {}), new Response("[9007199254740993]")];
  vi.stubGlobal("fetch", async () => answers.shift());
  const asked = ask("api/runs/0");
  await vi.runAllTimersAsync();
  expect(await asked).toEqual([9007199254740993n]);
  expect(answers.length).toBe(0);
});

test("waiting ends when nobody wants the answer any more", async () => {
  const abort = new AbortController();
  let times = 0;
  vi.stubGlobal("fetch", async () => {
    times++;
    return loading();
  });
  const asked = ask("api/runs/0", abort.signal);
  await vi.waitFor(() => expect(times).toBe(1));
  await new Promise((resolve) => setTimeout(resolve));
  abort.abort(new Error("enough"));
  await expect(asked).rejects.toThrow("enough");
  expect(times).toBe(1);
});

test("errors are the server's words; what comes from elsewhere has its status", async () => {
  const body = { what: "no such step", where: "step 9", hint: "there are 0 to 5" };
  vi.stubGlobal("fetch", async () => answer(404, { error: body }));
  await expect(ask("a")).rejects.toMatchObject({ body, status: 404 });
  vi.stubGlobal("fetch", async () => new Response("<html>Bad gateway</html>", { status: 502 }));
  await expect(ask("api/x")).rejects.toMatchObject({ body: { what: "the server answered 502", where: "api/x" } });
  vi.stubGlobal("fetch", async () => Promise.reject(new TypeError("failed to fetch")));
  await expect(ask("a")).rejects.toThrow(ApiError);
});

test("a token that was refused gives way to the one that another tab has kept", async () => {
  storage.set("stepscope-token:", "new");
  const asked: string[] = [];
  vi.stubGlobal("fetch", async (_path: string, { headers }: { headers: Record<string, string> }) => {
    asked.push(headers.Authorization ?? "");
    return headers.Authorization === "Bearer new" ? answer(200, { is: "there" }) : answer(401, {});
  });
  expect(await ask("api/runs")).toEqual({ is: "there" });
  expect(asked).toEqual(["", "Bearer new"]);
  storage.set("stepscope-token:", "other");
  vi.stubGlobal("fetch", async () => answer(401, {}));
  await expect(ask("api/runs")).rejects.toMatchObject({ status: 401 });
});

test("a token is found in what the command printed", () => {
  expect(tokenIn("http://127.0.0.1:8000/?token=a+b%26c#timeline")).toBe("a b&c");
  expect(tokenIn(" 0123abcd\n")).toBe("0123abcd");
  expect(tokenIn("x?run=1&token=7 ")).toBe("7");
});

test("in a frame that may keep nothing, the token lasts as long as the page", async () => {
  const refuse = () => {
    throw new DOMException("denied", "SecurityError");
  };
  vi.stubGlobal("localStorage", { getItem: refuse, setItem: refuse });
  vi.stubGlobal("location", { href: "http://127.0.0.1:1/?token=t" });
  vi.stubGlobal("history", { state: null, replaceState: () => undefined });
  const asked: string[] = [];
  vi.stubGlobal("fetch", async (_path: string, { headers }: { headers: Record<string, string> }) => {
    asked.push(headers.Authorization ?? "");
    return answer(200, { is: "there" });
  });
  takeToken();
  expect(await ask("a")).toEqual({ is: "there" });
  expect(asked).toEqual(["Bearer t"]);
});
