import { type Command, InvalidArgumentError } from "commander";
import { z } from "zod";
import { checkSchema } from "../../db/check-schema.ts";
import { createClock } from "../../db/clock.ts";
import { openDb } from "../../db/open.ts";
import { type AuditActor, insertAuditEntries } from "../../db/queries/audit-entries.ts";
import type { DataKeyPair } from "../../db/queries/encrypted-values.ts";
import type { Pool } from "../../db/tables.ts";
import type { Result } from "../../payments/error-codes.ts";
import { checkOperator, type OperatorRole } from "../../payments/operators/operators.ts";
import { findUnitIn, withUnits } from "../../payments/readable-amounts.ts";
import { cleanText, escapeJson } from "../../runtime/clean-text.ts";
import { ConfigError, readAdminConfig } from "../../runtime/config.ts";
import { createDecrypt, createEncrypt, type Decrypt, type Encrypt } from "../../runtime/encryption.ts";
import { createLog, type Log } from "../../runtime/log.ts";
import { type Networks, readNetworks } from "../../runtime/networks/read-networks.ts";
import { validateUrl } from "../../runtime/safe-fetch.ts";

/** A command was called with wrong arguments; the message is one sentence. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}
/** The subject of a command does not exist, or the command is not allowed. */
export class RefusedError extends Error {
  override readonly name = "RefusedError";
}

/** What a command works with. */
export type Context = {
  /** Throws ConfigError without DATABASE_URL. Commands that need no database do not read it. */
  readonly db: Pool;
  env: NodeJS.ProcessEnv;
  log: Log;
  now: () => Date;
  /** Returns what encrypts to a pair's public key, with its name. Throws ConfigError without its variable. */
  encryptTo: (pair: DataKeyPair) => { keyId: string; encrypt: Encrypt };
  /** Returns what decrypts with a pair's private keys. Throws ConfigError without their variable. */
  decryptWith: (pair: DataKeyPair) => Decrypt;
  /** Returns the path of the networks file. Only commands that read it call it. */
  networksFile: () => string;
  /** Returns the networks file for what is displayed; undefined without one, and when it is invalid. */
  shownNetworks: () => Networks | undefined;
  /** Returns a copy of a value for people, with units (see `withUnits`). */
  readable: <T>(value: T) => T;
  /** Address at which buyers reach this deployment, when PUBLIC_URL is set. */
  publicUrl: string | undefined;
  validateUrl: (url: string) => string | undefined;
  /**
   * Returns the operator that runs the command (OPERATOR), for the audit log. Every command that changes something calls
   * it. Throws RefusedError when there are operators and none has this name and role.
   */
  actor: (role?: OperatorRole) => Promise<AuditActor>;
  /** Writes an action that changes nothing in the database to the audit log. */
  record: (action: string, subject: string) => Promise<void>;
};

/** The output of a command: a value for machines, and lines for people (by default the value as a table). */
type Output = {
  value: unknown;
  lines?: string[];
  /** Lines of a file for other programs in place of those for people. A terminal shows them without control characters. */
  csv?: string[];
  /** An error that is printed after the output; the command then exits with 1. */
  refusal?: string;
};

type Action = (context: Context, args: string[], options: Record<string, string | undefined>) => Promise<Output>;

/** Adds an action to a command: opens the database, runs the action, prints its output, closes the database. */
export type AddAction = (command: Command, action: Action) => Command;

/**
 * Returns the function that adds actions with the settings of an environment.
 * @param print receives one line at a time
 * @param isTerminal lines go to a terminal, and not to a file or another program
 */
export const createAddAction =
  (env: NodeJS.ProcessEnv, print: (line: string) => void, { isTerminal = false } = {}): AddAction =>
  (command, action) =>
    command.option("--json", "print one JSON document, for machines").action(async (...given) => {
      const { json, ...options } = command.opts();
      const output = await withContext(env, async (context) => {
        const { value, lines, csv, refusal } = await action(context, given.slice(0, -2).map(String), options);
        return { value, lines: lines ?? csv ?? describe(context.readable(value)), isData: csv !== undefined, refusal };
      });
      // Some texts come from merchants and buyers. JSON can escape them; in a file, CSV is what they wrote, as over the API.
      if (json === true) print(escapeJson(JSON.stringify(output.value, showBigint, 2)));
      else for (const line of output.lines) print(output.isData && !isTerminal ? line : toLine(line));
      if (output.refusal !== undefined) throw new RefusedError(output.refusal);
    });

/** Returns a text as one line that a terminal shows as it is. */
export const toLine = (text: string): string => cleanText(text, text.length);

/** Returns a value as one line of JSON that a terminal shows as it is. */
export const toJsonLine = (value: unknown): string => escapeJson(JSON.stringify(value));

/** Of each key pair, how the names of its variables begin. */
const prefixes = { "buyer-data": "BUYER_DATA", webhooks: "WEBHOOK", totp: "TOTP" } as const satisfies Record<
  DataKeyPair,
  string
>;

async function withContext<T>(env: NodeJS.ProcessEnv, work: (context: Context) => Promise<T>): Promise<T> {
  const config = readAdminConfig(env);
  const opened =
    config.DATABASE_URL === undefined
      ? undefined
      : openDb(config.DATABASE_URL, { max: 1, applicationName: "pay-admin" });
  const openedDb = (): Pool => {
    if (!opened) throw new ConfigError("DATABASE_URL is missing: the command needs the database");
    return opened;
  };
  const clock = opened ? createClock(opened) : undefined;
  const now = clock?.now ?? (() => new Date());
  const actor = async (role: OperatorRole = "operator"): Promise<AuditActor> => {
    const { name } = unwrap(await checkOperator({ db: openedDb() }, { name: config.OPERATOR, role }));
    return { kind: "operator", id: name, address: null };
  };
  try {
    // Commands that need the database report an unreachable one themselves.
    const isReachable = await clock?.measure().then(
      () => true,
      () => false,
    );
    const schema = opened && isReachable ? await checkSchema(opened) : undefined;
    if (schema?.state === "newer") throw new ConfigError(schema.refusal);
    return await work({
      get db() {
        return openedDb();
      },
      env,
      log: createLog({ level: "silent", role: "admin" }),
      now,
      encryptTo(pair) {
        const name = `${prefixes[pair]}_PUBLIC_KEY` as const;
        const key = config[name];
        if (!key) throw new ConfigError(`${name} is missing: the command encrypts with it`);
        return { keyId: key.id, encrypt: createEncrypt(key) };
      },
      decryptWith(pair) {
        const name = `${prefixes[pair]}_PRIVATE_KEYS` as const;
        const keys = config[name];
        if (!keys) throw new ConfigError(`${name} is missing: the command decrypts with it`);
        return createDecrypt(keys);
      },
      networksFile() {
        if (!config.NETWORKS_FILE) throw new ConfigError("NETWORKS_FILE is missing: the command reads it");
        return config.NETWORKS_FILE;
      },
      shownNetworks: () => tryNetworks(config.NETWORKS_FILE),
      readable: (value) => withUnits(value, unitsOf(tryNetworks(config.NETWORKS_FILE))) as typeof value,
      publicUrl: config.PUBLIC_URL,
      validateUrl: (url) => validateUrl({ allowPrivate: config.ALLOW_PRIVATE_ADDRESSES }, url),
      actor,
      record: async (action, subject) =>
        insertAuditEntries(openedDb(), [
          { actor: await actor(), action, subject, before: null, after: null, at: now() },
        ]),
    });
  } finally {
    await opened?.destroy();
  }
}

const unitsOf = (networks: Networks | undefined) =>
  findUnitIn((networks?.chains ?? []).flatMap(({ assets }) => [...assets]));

/** Reads the networks file. An invalid one must not keep operators from reading what needs none. */
function tryNetworks(file: string | undefined): Networks | undefined {
  try {
    return file === undefined ? undefined : readNetworks(file);
  } catch (error) {
    if (error instanceof ConfigError) return undefined;
    throw error;
  }
}

/** Returns the value of a successful result. Throws UsageError or RefusedError with the message of a refused one. */
export function unwrap<T>(result: Result<T>): T {
  if (result.ok) return result.value;
  if (["params_validation", "invalid_params"].includes(result.code)) throw new UsageError(result.message);
  throw new RefusedError(result.message);
}

/** Returns a parser that accepts one of these words. It throws a usage error that lists them. */
export function oneOf<const W extends string>(...words: readonly W[]): (text: string | undefined) => W {
  return (text) => {
    const word = words.find((one) => one === text);
    if (word === undefined) throw new InvalidArgumentError(`expected ${words.join(" or ")}`);
    return word;
  };
}

/** Parses the mode of an account's objects. */
export const parseMode = oneOf("live", "test");

export function wholeNumber(text: string): string {
  if (!/^[1-9]\d{0,5}$/.test(text)) throw new InvalidArgumentError("expected a whole number from 1 to 999999");
  return text;
}

/** Parses an amount in minor units, above zero. */
export function parseMinorUnits(text: string): string {
  if (!/^[1-9]\d{0,77}$/.test(text)) throw new InvalidArgumentError("expected a whole number of minor units");
  return text;
}

/** What `time` accepts, as the texts of `--help` say it. */
export const TIMES = "such as 2026-03-01T12:00:00Z, or a date in UTC";

/** Times with their zone, with seconds or without. */
const zonedTime = z.union([z.iso.datetime({ offset: true }), z.iso.datetime({ offset: true, precision: -1 })]);

/**
 * Parses a time with its zone, or a date, which begins at 00:00 UTC. Refuses a time without a zone: it would mean another moment on each
 * operator's machine.
 */
export function time(text: string): string {
  if (isDay(text) || zonedTime.safeParse(text).success) return new Date(text).toISOString();
  throw new InvalidArgumentError(
    "expected a time with its zone, such as 2026-03-01T12:00:00Z, or a date, which begins at 00:00 UTC",
  );
}

/** Returns true for an existing date, YYYY-MM-DD. */
export function isDay(text: string): boolean {
  const at = new Date(`${text}T00:00:00Z`);
  return /^\d{4}-\d\d-\d\d$/.test(text) && !Number.isNaN(at.getTime()) && at.toISOString().startsWith(text);
}

/** The longest line of a table, characters. */
const WIDTH = 120;

/** Returns rows as a table, or one after the other when they are too wide, and any other value as its members, one per line. */
export function describe(value: unknown, width: number = WIDTH): string[] {
  if (!Array.isArray(value)) return describeMembers(value);
  if (value.length === 0) return ["none"];
  const names = Object.keys(value[0]);
  const rows = [names, ...value.map((row: Record<string, unknown>) => names.map((name) => show(row[name])))];
  const widths = names.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  const table = rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join("  ")
      .trimEnd(),
  );
  return table.every((line) => line.length <= width) ? table : describeEach(value);
}

/** Returns every item with its members one per line, and an empty line between two items. */
export function describeEach(items: readonly object[]): string[] {
  if (items.length === 0) return ["none"];
  return items.flatMap((item, index) => [...(index > 0 ? [""] : []), ...describe(item)]);
}

function describeMembers(value: unknown): string[] {
  const members = Object.entries(value ?? {});
  const width = Math.max(...members.map(([name]) => name.length));
  return members.map(([name, member]) => `${name.padEnd(width)}  ${show(member)}`);
}

/** Returns one value as one line of text, which a terminal shows as it is: some of it comes from merchants and buyers. */
export function show(value: unknown): string {
  if (value === null || value === undefined) return "-";
  if (value instanceof Date) return value.toISOString();
  const text = typeof value === "object" ? JSON.stringify(value, showBigint) : String(value);
  return toLine(text);
}

const showBigint = (_name: string, value: unknown) => (typeof value === "bigint" ? value.toString() : value);
