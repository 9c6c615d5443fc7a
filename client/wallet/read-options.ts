import type { Action, PaymentOption } from "../api-types.ts";
import { requireSafe } from "./wallet-errors.ts";

/** What an option pays, in the form that the checks compare. */
export type Expected = {
  /** CAIP-2. */
  chain: string;
  /** The part of the chain behind its namespace: on EVM, its id. */
  reference: string;
  payer: string;
  token: string;
  /** Minor units. */
  amount: bigint;
};

/** Returns what an option pays. Throws an `UnsafeActionError` when it is not readable, or names two chains. */
export function readExpected({ account, amount }: PaymentOption): Expected {
  const [, chain = "", reference = "", payer = ""] =
    /^([a-z0-9-]{3,8}:([\w-]{1,32})):(\w{1,128})$/.exec(toText(account)) ?? [];
  const [, unitChain, token = ""] = /^caip19\/([^/]+)\/[^/:]+:(\w+)$/.exec(toText(amount?.unit)) ?? [];
  requireSafe(payer !== "" && token !== "", "the option's account or unit is not readable");
  requireSafe(unitChain === chain, "the option's amount and account are on different chains");
  const value = toText(amount.value);
  requireSafe(/^\d{1,78}$/.test(value), "the option's amount is not readable");
  return { chain, reference, payer, token, amount: BigInt(value) };
}

/** Returns the given options. Throws an `UnsafeActionError` when what arrived are no options. */
export function readOptions(options: readonly PaymentOption[]): readonly PaymentOption[] {
  requireSafe(Array.isArray(options), "the service returned no list of options");
  for (const option of options) {
    requireSafe(typeof option?.id === "string", "an option has no id");
    readExpected(option);
    readActions(option.actions);
  }
  return options;
}

/** Returns the given actions. Throws an `UnsafeActionError` when what arrived are no actions. */
export function readActions(actions: readonly Action[]): readonly Action[] {
  requireSafe(
    Array.isArray(actions) && actions.every((action) => typeof action?.data === "object" && action.data !== null),
    "the actions of an option are not readable",
  );
  return actions;
}

const toText = (value: unknown): string => (typeof value === "string" ? value : "");
