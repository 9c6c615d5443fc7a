import { type Command, InvalidArgumentError } from "commander";
import { createClock } from "../../db/clock.ts";
import { openDb } from "../../db/open.ts";
import type { Pool } from "../../db/tables.ts";
import type { Result } from "../../payments/errors.ts";
import { recordAction } from "../../payments/operators.ts";
import { ConfigError, readAdminConfig } from "../config.ts";
import { findUrlFault } from "../outward.ts";
import { createSealer, type Sealer } from "../sealer.ts";

/** A wrong call, said in one sentence. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}
/** What was asked for is not there, or may not be done. */
export class RefusedError extends Error {
  override readonly name = "RefusedError";
}

/** What a command works with. */
export type Tool = {
  db: Pool;
  env: NodeJS.ProcessEnv;
  now: () => Date;
  /** Needs DATA_KEYS; asked for by those commands alone that seal or open something. */
  sealer: () => Sealer;
  /** Path of the networks file; asked for by those commands alone that read it. */
  networksFile: () => string;
  /** Where buyers reach this deployment, when PUBLIC_URL says so. */
  publicUrl: string | undefined;
  findUrlFault: (url: string) => string | undefined;
  /** Writes down that somebody did this by hand. */
  record: (action: string, subject: string) => Promise<void>;
};

/** A command's answer: a value for machines, and lines for people (the value, aligned, when unset). */
export type Told = {
  value: unknown;
  lines?: string[];
  /** Said after the answer, for a command that finds something wrong: it ends with 1. */
  refusal?: string;
};

type Work = (tool: Tool, args: string[], options: Record<string, string | undefined>) => Promise<Told>;

/** Makes a command run: opens the database, prints what it tells, closes. */
export type Runs = (command: Command, work: Work) => Command;

/** What makes commands run with the settings of an environment. @param print takes a line at a time */
export const runsWith =
  (env: NodeJS.ProcessEnv, print: (line: string) => void): Runs =>
  (command, work) =>
    command.option("--json", "one JSON document, for machines").action(async (...given) => {
      const { json, ...options } = command.opts();
      const told = await withTool(env, (tool) => work(tool, given.slice(0, -2).map(String), options));
      if (json === true) print(JSON.stringify(told.value, showBigint, 2));
      else for (const line of told.lines ?? describe(told.value)) print(line);
      if (told.refusal !== undefined) throw new RefusedError(told.refusal);
    });

async function withTool<T>(env: NodeJS.ProcessEnv, work: (tool: Tool) => Promise<T>): Promise<T> {
  const config = readAdminConfig(env);
  const db = openDb(config.DATABASE_URL, { max: 1, applicationName: "pay-admin" });
  const clock = createClock(db);
  const { now } = clock;
  try {
    // Some commands need no database; those that do say themselves that it is away.
    await clock.measure().catch(() => undefined);
    return await work({
      db,
      env,
      now,
      sealer() {
        if (!config.DATA_KEYS) throw new ConfigError("DATA_KEYS is missing: what is sealed in the database needs it");
        return createSealer(config.DATA_KEYS);
      },
      networksFile() {
        if (!config.NETWORKS_FILE) throw new ConfigError("NETWORKS_FILE is missing: the command reads it");
        return config.NETWORKS_FILE;
      },
      publicUrl: config.PUBLIC_URL,
      findUrlFault: (url) => findUrlFault({ allowPrivate: config.ALLOW_PRIVATE_ADDRESSES }, url),
      record: (action, subject) => recordAction({ db, now }, { who: config.OPERATOR, action, subject }),
    });
  } finally {
    await db.destroy();
  }
}

/** The value of an answer, or its refusal as an error in the caller's words. */
export function need<T>(result: Result<T>): T {
  if (result.ok) return result.value;
  if (["params_validation", "invalid_params"].includes(result.code)) throw new UsageError(result.message);
  throw new RefusedError(result.message);
}

/** One of these words, or a usage error that names them. */
export function oneOf<const W extends string>(...words: readonly W[]): (text: string) => W {
  return (text) => {
    const word = words.find((one) => one === text);
    if (word === undefined) throw new InvalidArgumentError(`expected ${words.join(" or ")}`);
    return word;
  };
}

export function wholeNumber(text: string): string {
  if (!/^[1-9]\d{0,5}$/.test(text)) throw new InvalidArgumentError("expected a whole number");
  return text;
}

export function time(text: string): string {
  if (Number.isNaN(Date.parse(text))) throw new InvalidArgumentError("expected a time such as 2026-03-01T12:00:00Z");
  return text;
}

/** Rows as a table, anything else as its members, one a line. */
export function describe(value: unknown): string[] {
  if (!Array.isArray(value)) return describeMembers(value as Record<string, unknown>);
  if (value.length === 0) return ["none"];
  const names = Object.keys(value[0]);
  const rows = [names, ...value.map((row: Record<string, unknown>) => names.map((name) => show(row[name])))];
  const widths = names.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  return rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join("  ")
      .trimEnd(),
  );
}

function describeMembers(value: Record<string, unknown>): string[] {
  const width = Math.max(...Object.keys(value).map((name) => name.length));
  return Object.entries(value).map(([name, one]) => `${name.padEnd(width)}  ${show(one)}`);
}

/** One value in a line. */
export function show(value: unknown): string {
  if (value === null || value === undefined) return "-";
  if (value instanceof Date) return value.toISOString();
  return typeof value === "object" ? JSON.stringify(value, showBigint) : String(value);
}

const showBigint = (_name: string, value: unknown) => (typeof value === "bigint" ? value.toString() : value);
