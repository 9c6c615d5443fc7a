import { generateKeyPairSync } from "node:crypto";
import { base58 } from "@scure/base";
import type { SplTransfer } from "../../../../chains/solana/build-payment.ts";
import { type Keypair, openKeypair, parseSecret } from "../../../../chains/solana/ed25519-keys.ts";

/** Returns a new key pair in the 64-byte format that wallets export. */
export function makeSecret(): Uint8Array {
  const jwk = generateKeyPairSync("ed25519").privateKey.export({ format: "jwk" });
  return Buffer.concat([Buffer.from(jwk.d ?? "", "base64url"), Buffer.from(jwk.x ?? "", "base64url")]);
}

export function makeSigner(): Keypair {
  const secret = parseSecret(base58.encode(makeSecret()));
  if (!secret) throw new Error("the new key pair is invalid");
  return openKeypair(secret);
}

export const makeAddress = (): string => makeSigner().address;

export const relayer = makeSigner();
export const buyer = makeSigner();
export const treasury = makeAddress();
export const mint = makeAddress();
export const blockhash = makeAddress();
export const budget = { units: 60_000, unitPrice: 10_000n };

/** Returns a transfer of 12.5 to the treasury, with changed members. */
export function makeTransfer(changes: Partial<SplTransfer> = {}): SplTransfer {
  return {
    feePayer: relayer.address,
    payer: buyer.address,
    mint,
    program: "token",
    decimals: 6,
    receiver: treasury,
    amount: 12_500_000n,
    memo: "pay_0123456789abcdef",
    makeReceiverAccount: false,
    ...changes,
  };
}
