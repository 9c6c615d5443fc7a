import { readFileSync } from "node:fs";
import { z } from "zod";
import { waitUntil } from "../../local/wait-until.ts";

/** Where a Node process opens its inspector on SIGUSR1. One process after the other has it. */
const INSPECTOR = "http://127.0.0.1:9229";

/**
 * What a Node process holds after a full garbage collection, bytes: its objects, without the code that V8 compiles of functions that run
 * often, which goes on for half an hour.
 */
export type Heap = { pid: number; heldBytes: number; residentBytes: number };

const USAGE = `JSON.stringify({
  spaces: process.getBuiltinModule("node:v8").getHeapSpaceStatistics(),
  external: process.memoryUsage().external,
})`;
/** V8 keeps compiled code in spaces named after code, and bytecode in those of trusted objects. */
const Usage = z.object({
  spaces: z.array(z.object({ space_name: z.string(), space_used_size: z.number() })),
  external: z.number(),
});

/**
 * Collects the garbage of a Node process through its inspector, and returns what it still holds: the used heap and the memory
 * outside of it. Without a collection, the used heap says more about the collector's schedule than about leaks. Closes the
 * inspector afterwards.
 */
export async function collectHeap(pid: number): Promise<Heap> {
  process.kill(pid, "SIGUSR1");
  const [target] = await waitUntil("the inspector answers", readTargets, { withinMs: 10_000 });
  const inspector = await openInspector(target.webSocketDebuggerUrl);
  try {
    const found = await inspector.evaluate("process.pid");
    if (found !== pid) throw new Error(`the inspector's port belongs to process ${String(found)} and not to ${pid}`);
    await inspector.send("HeapProfiler.collectGarbage");
    const { spaces, external } = Usage.parse(JSON.parse(String(await inspector.evaluate(USAGE))));
    const objects = spaces.filter(({ space_name }) => !/code|trusted/.test(space_name));
    const heldBytes = objects.reduce((sum, { space_used_size }) => sum + space_used_size, external);
    return { pid, heldBytes, residentBytes: readAnonymous(pid) };
  } finally {
    await inspector.closeAll();
  }
}

/**
 * Returns the resident memory that belongs to a process alone, bytes; not the files and the shared memory that it maps. 0 when the
 * process has ended.
 */
function readAnonymous(pid: number): number {
  try {
    return Number(/^RssAnon:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? 0) * 1_024;
  } catch {
    return 0;
  }
}

/** Returns the same of a process and its children, such as the backends of Postgres. */
export function readFamily(pid: number): number {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").split(" ").filter(Boolean).map(Number);
  return [pid, ...children].reduce((sum, one) => sum + readAnonymous(one), 0);
}

const Targets = z.tuple([z.object({ webSocketDebuggerUrl: z.string() })]);

async function readTargets() {
  const response = await fetch(`${INSPECTOR}/json/list`);
  return Targets.parse(await response.json());
}

const Reply = z.object({ id: z.number(), result: z.looseObject({ result: z.looseObject({}).optional() }).optional() });

async function openInspector(url: string) {
  const socket = new WebSocket(url);
  const waiting = new Map<number, (value: unknown) => void>();
  socket.onmessage = ({ data }) => {
    const { id, result } = Reply.parse(JSON.parse(String(data)));
    waiting.get(id)?.(result?.result?.["value"]);
  };
  await new Promise((resolve, reject) => {
    socket.onopen = resolve;
    socket.onerror = reject;
  });
  let last = 0;
  const send = (method: string, params = {}) =>
    new Promise<unknown>((resolve) => {
      last += 1;
      waiting.set(last, resolve);
      socket.send(JSON.stringify({ id: last, method, params }));
    });
  const evaluate = (expression: string) => send("Runtime.evaluate", { expression });
  return {
    send,
    evaluate,
    /** Ends the connection and frees the inspector's port for the next process. */
    async closeAll() {
      const closed = new Promise((resolve) => {
        socket.onclose = resolve;
      });
      void evaluate("setImmediate(() => process.getBuiltinModule('node:inspector').close())");
      await closed;
    },
  };
}
