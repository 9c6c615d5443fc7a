import { readFileSync, writeFileSync } from "node:fs";

/**
 * Preloaded into a service process (`--import`). It shifts the process's clock by the milliseconds in the file that
 * CLOCK_FILE names, and follows changes of the file. It writes the process id to a file beside it, so that a fault can
 * kill the process.
 */
const file = process.env["CLOCK_FILE"] ?? "";
const Real = Date;
let offsetMs = 0;

function readOffset(): void {
  try {
    offsetMs = Number(readFileSync(file, "utf8")) || 0;
  } catch {
    offsetMs = 0;
  }
}

writeFileSync(`${file}.pid`, String(process.pid));
readOffset();
setInterval(readOffset, 200).unref();
const realNow = Real.now.bind(Real);
const now = () => realNow() + offsetMs;
globalThis.Date = new Proxy(Real, {
  construct: (target, args, self) => Reflect.construct(target, args.length === 0 ? [now()] : args, self),
  apply: () => new Real(now()).toString(),
  get: (target, name) => (name === "now" ? now : Reflect.get(target, name)),
});
