import { readFileSync, writeFileSync } from "node:fs";

/**
 * Loaded before a process of ours (`--import`): its clock is off by as many milliseconds as stand in the file that
 * CLOCK_FILE names, and follows the file. Beside it the process leaves its id, for those who want to end it.
 */
const file = process.env.CLOCK_FILE ?? "";
const Real = Date;
let offMs = 0;

function readOff(): void {
  try {
    offMs = Number(readFileSync(file, "utf8")) || 0;
  } catch {
    offMs = 0;
  }
}

writeFileSync(`${file}.pid`, String(process.pid));
readOff();
setInterval(readOff, 200).unref();
const realNow = Real.now.bind(Real);
const now = () => realNow() + offMs;
globalThis.Date = new Proxy(Real, {
  construct: (target, args, self) => Reflect.construct(target, args.length === 0 ? [now()] : args, self),
  apply: () => new Real(now()).toString(),
  get: (target, name) => (name === "now" ? now : Reflect.get(target, name)),
});
