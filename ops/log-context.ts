import { AsyncLocalStorage } from "node:async_hooks";

/** What the lines of one request or one job have in common. */
export type LogFields = { requestId?: string | undefined; job?: string | undefined };

const store = new AsyncLocalStorage<LogFields>();

/** Runs work whose log lines, and whose jobs, carry these fields. */
export function withLogFields<T>(fields: LogFields, work: () => T): T {
  return store.run(fields, work);
}

/** Runs work that belongs to nobody in particular, such as a batch of several jobs. */
export function withoutLogFields<T>(work: () => T): T {
  return store.exit(work);
}

/** The fields of whoever runs now. */
export function readLogFields(): LogFields {
  return { ...store.getStore() };
}
