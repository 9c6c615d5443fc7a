import type { Worker } from "bullmq";
import type { QueueName } from "../queues/catalog.ts";
import { type ConsumeOptions, consume, type Handlers } from "../queues/consume.ts";

/** Runs the jobs of the given queues with their handlers. */
export function serve(names: readonly QueueName[], handlers: Handlers, options: ConsumeOptions): Worker[] {
  const serveOne = <N extends QueueName>(name: N) => consume(name, handlers[name], options);
  return names.map((name) => serveOne(name));
}
