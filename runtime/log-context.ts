import { AsyncLocalStorage } from "node:async_hooks";
import { readTraceIds } from "./tracing/spans.ts";

/** Fields that all log lines of one request or one job share. */
export type LogFields = { requestId?: string | undefined; job?: string | undefined };

const store = new AsyncLocalStorage<LogFields>();

/** Runs work with these fields on its log lines and on the jobs that it enqueues. */
export function withLogFields<T>(fields: LogFields, work: () => T): T {
  return store.run(fields, work);
}

/** Runs work without the fields of the current request or job, such as a batch of several jobs. */
export function withoutLogFields<T>(work: () => T): T {
  return store.exit(work);
}

/** Returns the fields of the request or job that is running, and the ids of its span if its trace is sampled. */
export function readLogFields(): LogFields {
  return { ...store.getStore(), ...readTraceIds() };
}
