import type { TestBed } from "./test-bed.ts";

/** What injecting a fault returns. */
export type Injected = {
  /** Ends the part of the fault that no command of the runbook ends. */
  end?: () => Promise<unknown>;
  /** Restores what the runbook leaves changed, for the runbooks that follow. */
  cleanUp?: () => Promise<unknown>;
  /**
   * Returns the values of the placeholders in a command of `repair` (counted from 0), such as `<id>`, and of options that are
   * followed by `…`.
   */
  values?: (command: number) => Promise<Record<string, string>>;
  /** Waits for what the runbook promises besides the end of the alert. */
  result?: () => Promise<unknown>;
};

/** One alert of a runbook: the fault that raises it, and what an operator sees and does. */
export type RunbookCase = {
  runbook: string;
  /** The alert whose expression becomes true. */
  alert: string;
  /** The fault, in words. It says so when it stands in for one that cannot be injected on one machine. */
  what: string;
  inject: (bed: TestBed) => Promise<Injected | undefined>;
  /** What the queries and commands of the runbook must print while the fault lasts. */
  shows?: RegExp;
  /** The commands of the runbook that repair it, as the text has them. They run after `end`. */
  repair?: readonly string[];
  /** The alert's condition over a shorter time, where its own windows are not in brackets. Its end is awaited instead. */
  brief?: string;
  /** Longest wait for the alert's expression, and for its end, milliseconds. */
  withinMs?: number;
  endsWithinMs?: number;
};
