import { base58 } from "@scure/base";
import { type AccountState, isTokenProgram, type Key, mintIn, rentEpoch, tokenIn } from "./account-store.ts";
import type { Methods } from "./chain-methods.ts";
import { encodeKey } from "./landed-transactions.ts";
import {
  addressAt,
  type Config,
  commitmentOf,
  configAt,
  inContext,
  membersOf,
  type Params,
  readAddress,
  slotFor,
  textsAt,
} from "./rpc-params.ts";
import { invalidParams } from "./validator-errors.ts";
import type { Ledger } from "./validator-state.ts";

/** Returns the methods for accounts, balances and token accounts. */
export function accountMethods({ slots, bank, read }: Ledger): Methods {
  function ask(params: Params, index = 1) {
    const config = configAt(params, index);
    const slot = slotFor(slots, config);
    const commitment = commitmentOf(config);
    return { config, slot, at: (key: Key) => read(key, commitment) };
  }

  /** Returns the token accounts of an owner that have the mint or program of the filter. */
  function tokensOf(owner: Key, filter: Config, at: (key: Key) => AccountState | undefined) {
    const fits = tokenFilter(filter);
    return Array.from(bank.accounts.tokenAccountsOf(owner)).flatMap((key) => {
      const state = at(key);
      const token = state === undefined ? undefined : tokenIn(state);
      return state !== undefined && token?.owner === owner && fits(token) ? [{ key, state }] : [];
    });
  }

  return {
    getAccountInfo(params) {
      const { config, slot, at } = ask(params);
      return inContext(slot, describe(at(addressAt(params, 0)), config));
    },
    getMultipleAccounts(params) {
      const { config, slot, at } = ask(params);
      const keys = textsAt(params, 0, 100).map(readAddress);
      return inContext(
        slot,
        keys.map((key) => describe(at(key), config)),
      );
    },
    getBalance(params) {
      const { slot, at } = ask(params);
      return inContext(slot, Number(at(addressAt(params, 0))?.lamports ?? 0n));
    },
    getTokenAccountBalance(params) {
      const { slot, at } = ask(params);
      const state = at(addressAt(params, 0));
      if (state === undefined) throw invalidParams("Invalid param: could not find account");
      const token = tokenIn(state);
      const mint = token === undefined ? undefined : at(token.mint);
      const decimals = mint === undefined ? undefined : mintIn(mint)?.decimals;
      if (token === undefined || decimals === undefined) throw invalidParams("Invalid param: not a Token account");
      return inContext(slot, describeAmount(token.amount, decimals));
    },
    getTokenSupply(params) {
      const { slot, at } = ask(params);
      const state = at(addressAt(params, 0));
      const mint = state === undefined ? undefined : mintIn(state);
      if (mint === undefined) throw invalidParams("Invalid param: not a Token mint");
      return inContext(slot, describeAmount(mint.supply, mint.decimals));
    },
    getTokenAccountsByOwner(params) {
      const { config, slot, at } = ask(params, 2);
      const found = tokensOf(addressAt(params, 0), configAt(params, 1), at);
      return inContext(
        slot,
        found.map(({ key, state }) => ({ pubkey: encodeKey(key), account: describe(state, config) })),
      );
    },
  };
}

function tokenFilter({ mint, programId }: Config): (token: { mint: Key; program: Key }) => boolean {
  if (typeof mint === "string") {
    const wanted = readAddress(mint);
    return (token) => token.mint === wanted;
  }
  if (typeof programId !== "string") throw invalidParams("Invalid params: expected a mint or a programId");
  const wanted = readAddress(programId);
  if (!isTokenProgram(wanted)) throw invalidParams("Invalid param: unrecognized Token program id");
  return (token) => token.program === wanted;
}

/** Returns an account as JSON. `jsonParsed` returns base64, as a validator does for programs that it cannot parse. */
export function describe(state: AccountState | undefined, { encoding, dataSlice }: Config) {
  if (state === undefined) return null;
  const data = slice(state.data, dataSlice);
  return {
    lamports: Number(state.lamports),
    owner: base58.encode(state.owner),
    data: encode(data, encoding),
    executable: state.executable,
    rentEpoch: Number(rentEpoch),
    space: state.data.length,
  };
}

function slice(data: Uint8Array, part: unknown): Uint8Array {
  if (typeof part !== "object" || part === null) return data;
  const { offset, length } = membersOf(part);
  const start = Number(offset ?? 0);
  return data.subarray(start, start + Number(length ?? 0));
}

function encode(data: Uint8Array, encoding: unknown): string | [string, string] {
  if (encoding === "base64" || encoding === "jsonParsed") return [Buffer.from(data).toString("base64"), "base64"];
  if (encoding !== undefined && encoding !== "base58" && encoding !== "binary")
    throw invalidParams(`unsupported encoding: ${String(encoding)}`);
  if (data.length > 128)
    throw invalidParams("Encoded binary (base 58) data should be less than 128 bytes, please use Base64 encoding.");
  return encoding === "base58" ? [base58.encode(data), "base58"] : base58.encode(data);
}

/** Returns a token amount in its three notations. */
export function describeAmount(amount: bigint, decimals: number) {
  const digits = amount.toString().padStart(decimals + 1, "0");
  const whole = digits.slice(0, digits.length - decimals);
  const rest = decimals === 0 ? "" : digits.slice(-decimals).replace(/0+$/, "");
  const uiAmountString = rest === "" ? whole : `${whole}.${rest}`;
  return { amount: amount.toString(), decimals, uiAmount: Number(uiAmountString), uiAmountString };
}
