import { randomBytes } from "node:crypto";
import { base58 } from "@scure/base";
import { expect, test } from "vitest";
import { solanaSigner } from "../../../client/solana.ts";
import { evmSigner } from "../../../client/viem.ts";

const seed = randomBytes(32).toString("hex");

test.each([
  ["solanaSigner", (key: unknown) => solanaSigner(key as never)],
  ["evmSigner", (key: unknown) => evmSigner(key as never, { chains: [1] })],
])("%s refuses a key as text, and its error says what to pass without the key", (name, makeSigner) => {
  for (const key of [`0x${seed}`, base58.encode(Buffer.from(seed + seed, "hex")), null, undefined]) {
    expect(() => makeSigner(key)).toThrow(new RegExp(`^${name}: expected `));
    expect(() => makeSigner(key)).not.toThrow(String(key));
  }
});
