import { PublicKey, SystemProgram, type TransactionInstruction } from "@solana/web3.js";
import { Registry } from "prom-client";
import { describe, expect, test } from "vitest";
import {
  buildTransaction,
  buildTransfer,
  computeBudgetInstructions,
  type SplTransfer,
  tokenPrograms,
} from "../../../../chains/solana/build-payment.ts";
import { type Keypair, openKeypair, parseSecret } from "../../../../chains/solana/ed25519-keys.ts";
import { openSolanaChain } from "../../../../chains/solana/open-solana-chain.ts";
import { readSignedPayment } from "../../../../chains/solana/signed-payment.ts";
import { firstSignature, parseTransaction, withSignature } from "../../../../chains/solana/wire-format.ts";
import { describeSolana, newSolanaKeys } from "../../../../local/solana-entry.ts";
import { createMetrics } from "../../../../runtime/metrics.ts";
import { parseNetworks, type SolanaNetwork } from "../../../../runtime/networks/read-networks.ts";
import { blockhash, budget, buyer, makeAddress, makeSigner, makeTransfer } from "./solana-fixtures.ts";

const keys = newSolanaKeys();
const mintOf = (program: "token" | "token-2022") => {
  return { address: makeAddress(), decimals: 6, program: tokenPrograms[program].toBase58(), isFrozenAtFirst: false };
};
const [usdc, newer] = [mintOf("token"), mintOf("token-2022")];
const id = "solana:EtWTRABZaYq6iMfeYKouRu166VU2xqa1";
const entry = describeSolana({ id, mints: [usdc, newer], keys, rpcUrls: ["http://127.0.0.1:1"], slotMs: 400 });
const [network] = parseNetworks({ deployment: "test", chains: [entry] }).chains;
const chain = openSolanaChain(network as SolanaNetwork, createMetrics(new Registry(), "signer"));
const secret = parseSecret(keys.lanes[0]?.secretKey ?? "");
if (!secret) throw new Error("the relayer's key is invalid");
const relayer = openKeypair(secret);

const transferOf = (change: Partial<SplTransfer> = {}) =>
  makeTransfer({ feePayer: relayer.address, mint: usdc.address, receiver: chain.treasury, ...change });

/** Builds a transaction and has its fee payer and the buyer sign it. */
async function sign(instructions: TransactionInstruction[], feePayer: Keypair = relayer): Promise<Uint8Array> {
  const parsed = parseTransaction(buildTransaction(feePayer.address, instructions, blockhash));
  if ("error" in parsed) throw new Error(parsed.error);
  let { bytes } = parsed;
  for (const signer of [feePayer, buyer])
    bytes = withSignature({ ...parsed, bytes }, signer.address, await signer.sign(parsed.message));
  return bytes;
}
const pay = (change: Partial<SplTransfer> = {}) => [
  ...computeBudgetInstructions(budget),
  ...buildTransfer(transferOf(change)),
];
const read = (bytes: Uint8Array) => readSignedPayment(chain, firstSignature(bytes), bytes);

test("the signed bytes of a payment say who pays what, for which payment, and at which place", async () => {
  const bytes = await sign(pay());
  expect(read(bytes)?.movement).toEqual({
    txHash: firstSignature(bytes),
    // The third instruction.
    logIndex: 512,
    token: usdc.address,
    payer: buyer.address,
    receiver: chain.treasury,
    amount: 12_500_000n,
    authorizationNonce: "pay_0123456789abcdef",
  });
});

describe("signed bytes say nothing when", () => {
  test("they are not those of the transaction", async () => {
    const bytes = await sign(pay());
    expect(readSignedPayment(chain, firstSignature(await sign(pay({ amount: 1n }))), bytes)).toBeUndefined();
    expect(readSignedPayment(chain, firstSignature(bytes), Uint8Array.of(1, 2, 3))).toBeUndefined();
  });

  test("a byte of the message was changed after the relayer signed it", async () => {
    const bytes = await sign(pay());
    const other = await sign(pay({ amount: 99_000_000n }));
    const forged = Uint8Array.from(other);
    forged.set(bytes.subarray(1, 65), 1);
    expect(firstSignature(forged)).toBe(firstSignature(bytes));
    expect(read(forged)).toBeUndefined();
  });

  test("their fee payer is no relayer of the networks file, whose key could be of any kind", async () => {
    const stranger = makeSigner();
    expect(read(await sign(pay({ feePayer: stranger.address }), stranger))).toBeUndefined();
  });

  test.each([
    ["the token's issuer can keep a fee", pay({ mint: newer.address, program: "token-2022" })],
    ["the token is not in the networks file", pay({ mint: makeAddress() })],
    ["the money goes to somebody else", pay({ receiver: makeAddress() })],
    ["nothing is paid", pay({ amount: 0n })],
    [
      "there is an instruction that we did not ask for",
      [
        ...pay(),
        SystemProgram.transfer({
          fromPubkey: new PublicKey(buyer.address),
          toPubkey: new PublicKey(makeAddress()),
          lamports: 1,
        }),
      ],
    ],
  ])("%s", async (_why, instructions) => {
    expect(read(await sign(instructions))).toBeUndefined();
  });
});
