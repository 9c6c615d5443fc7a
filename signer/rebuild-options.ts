import { parseArgs } from "node:util";
import { canonicalAsset } from "../chains/canonical-ids.ts";
import { ConfigError } from "../runtime/config.ts";
import type { RebuildOptions } from "./rebuild.ts";

/**
 * Reads the arguments of `signer rebuild`, each of which may be given several times: `--former <chain>=<address>` or
 * `--former <chain>=none`, `--from <chain>=<block>`, `--accept <transaction>/<log index>` and `--leave <asset>=<amount>`. Throws
 * ConfigError.
 */
export function readRebuildOptions(args: string[]): RebuildOptions {
  const many = { type: "string", multiple: true } as const;
  const options = { former: many, from: many, accept: many, leave: many };
  const { former = [], from = [], accept = [], leave = [] } = parse(() => parseArgs({ args, options }).values);
  const named = Map.groupBy(former.map(readPair), ([chain]) => chain);
  return {
    former: new Map([...named].map(([chain, pairs]) => [chain, readFormer(pairs)])),
    from: new Map(from.map(readPair).map(([chain, block]) => [chain, Number(readDigits(block))])),
    accepted: new Set(accept),
    left: new Map(leave.map(readPair).map(([asset, amount]) => [canonicalAsset(asset), readDigits(amount)])),
  };
}

function parse<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw new ConfigError(error instanceof Error ? error.message : "the arguments cannot be read");
  }
}

function readFormer(pairs: readonly (readonly [string, string])[]): string[] {
  const addresses = pairs.map(([, address]) => address);
  if (!addresses.includes("none")) return addresses;
  if (addresses.length > 1) throw new ConfigError("--former names a former treasury, and says that there was none");
  return [];
}

/** Splits `name=value` at its last equals sign. */
function readPair(text: string): readonly [string, string] {
  const at = text.lastIndexOf("=");
  if (at <= 0 || at === text.length - 1) throw new ConfigError(`expected <name>=<value> instead of ${text}`);
  return [text.slice(0, at), text.slice(at + 1)];
}

function readDigits(text: string): bigint {
  if (!/^\d{1,78}$/.test(text)) throw new ConfigError(`expected a whole number instead of ${text}`);
  return BigInt(text);
}
