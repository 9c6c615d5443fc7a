import { base58 } from "@scure/base";
import { type Key, keyOf } from "./account-store.ts";
import type { Commitment, Slot, Slots } from "./slots.ts";
import { invalidParams, RpcError } from "./validator-errors.ts";

export type Params = readonly unknown[];
export type Config = Record<string, unknown>;

/** Returns the optional configuration object at the end of the parameters. */
export function configAt(params: Params, index: number): Config {
  const config = params[index];
  if (config === undefined || config === null) return {};
  if (typeof config === "object" && !Array.isArray(config)) return { ...config };
  throw invalidParams("Invalid params: invalid type, expected a configuration object.");
}

/** Returns the members of an object, and none for any other value. */
export function membersOf(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null ? { ...value } : {};
}

export function textAt(params: Params, index: number): string {
  const text = params[index];
  if (typeof text === "string") return text;
  throw invalidParams(`Invalid params: parameter ${index} is not a string.`);
}

export function numberAt(params: Params, index: number): number {
  const number = params[index];
  if (typeof number === "number" && Number.isSafeInteger(number) && number >= 0) return number;
  throw invalidParams(`Invalid params: parameter ${index} is not a whole number.`);
}

export function textsAt(params: Params, index: number, most: number): string[] {
  const list = params[index];
  if (!Array.isArray(list) || list.some((each) => typeof each !== "string"))
    throw invalidParams(`Invalid params: parameter ${index} is not a list of strings.`);
  if (list.length > most) throw invalidParams(`Too many inputs provided; max ${most}`);
  return list;
}

function decode(text: string, length: number, what: string): Uint8Array {
  let bytes: Uint8Array;
  try {
    bytes = base58.decode(text);
  } catch {
    throw invalidParams(`Invalid param: ${what} is not base58`);
  }
  if (bytes.length !== length) throw invalidParams("Invalid param: WrongSize");
  return bytes;
}

export const readAddress = (text: string): Key => keyOf(decode(text, 32, "an address"));

/** Returns the text when it is a signature. Throws otherwise. */
export function readSignature(text: string): string {
  decode(text, 64, "a signature");
  return text;
}

export const addressAt = (params: Params, index: number): Key => readAddress(textAt(params, index));

/** Returns the bytes of an encoded transaction or message. */
export function payloadAt(params: Params, index: number, encoding: unknown): Uint8Array {
  const text = textAt(params, index);
  if (encoding === "base64") {
    const bytes = Buffer.from(text, "base64");
    if (bytes.toString("base64") !== text) throw invalidParams("invalid base64 encoding");
    return bytes;
  }
  if (encoding !== undefined && encoding !== "base58")
    throw invalidParams(`unsupported encoding: ${String(encoding)}. Supported encodings: base58, base64`);
  try {
    return base58.decode(text);
  } catch {
    throw invalidParams("invalid base58 encoding");
  }
}

/** Returns the commitment of a request; the default of a validator is finalized. */
export function commitmentOf({ commitment = "finalized" }: Config): Commitment {
  if (commitment === "processed" || commitment === "confirmed" || commitment === "finalized") return commitment;
  throw invalidParams(`Invalid params: unknown variant \`${String(commitment)}\`, expected a commitment.`);
}

/** Returns the slot at the commitment of a request. */
export function slotFor(slots: Slots, config: Config): Slot {
  const slot = slots.at(commitmentOf(config));
  const { minContextSlot } = config;
  if (typeof minContextSlot === "number" && minContextSlot > slot.slot)
    throw new RpcError(-32016, "Minimum context slot has not been reached", { contextSlot: slot.slot });
  return slot;
}

/** Returns a response with the slot that it is valid for. */
export const inContext = <T>({ slot }: Slot, value: T) => ({ context: { apiVersion, slot }, value });

/** The validator version that this server imitates. */
export const apiVersion = "3.1.8";
