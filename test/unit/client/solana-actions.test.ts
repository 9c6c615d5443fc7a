import { randomBytes } from "node:crypto";
import { base58 } from "@scure/base";
import {
  createApproveInstruction,
  createTransferCheckedInstruction,
  createTransferInstruction,
  TOKEN_PROGRAM_ID,
} from "@solana/spl-token";
import {
  AddressLookupTableAccount,
  Keypair,
  PublicKey,
  SystemProgram,
  TransactionInstruction,
  TransactionMessage,
  VersionedTransaction,
} from "@solana/web3.js";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  buildPayment,
  buildTransfer,
  computeBudgetInstructions,
  findTokenAccount,
  type SplTransfer,
} from "../../../chains/solana/build-payment.ts";
import { UnsafeActionError } from "../../../client/index.ts";
import { solanaSigner } from "../../../client/solana.ts";
import { encodeBase58 } from "../../../client/wallet/base58.ts";
import { readSolanaTransaction } from "../../../client/wallet/solana-message.ts";

const buyer = Keypair.generate();
const newAddress = () => Keypair.generate().publicKey.toBase58();
const chain = "solana:EtWTRABZaYq6iMfeYKouRu166VU2xqa1";
const payment: SplTransfer = {
  feePayer: newAddress(),
  payer: buyer.publicKey.toBase58(),
  mint: newAddress(),
  program: "token",
  decimals: 6,
  receiver: newAddress(),
  amount: 12_500_000n,
  memo: "pay_1",
  makeReceiverAccount: true,
};
const blockhash = new PublicKey(randomBytes(32)).toBase58();
const source = new PublicKey(findTokenAccount(payment.payer, payment.mint, "token"));
const stranger = Keypair.generate().publicKey;
const option = {
  id: "opt",
  optionId: "opt",
  account: `${chain}:${payment.payer}`,
  etaS: 1,
  expiresAt: null,
  actions: [],
  collectData: null,
  amount: {
    unit: `caip19/${chain}/token:${payment.mint}`,
    value: "12500000",
    display: { assetSymbol: "", assetName: "", decimals: 6 },
  },
};

/** Gives a transaction to the buyer's wallet. Returns the signed one. */
async function sign(
  bytes: Uint8Array,
  more: object | "twice" = {},
  asked: typeof option = option,
): Promise<VersionedTransaction> {
  const transaction = Buffer.from(bytes).toString("base64");
  const action = {
    chain_id: chain,
    method: "solana_signTransaction",
    params: [{ transaction }],
    ...(more === "twice" ? {} : more),
  };
  const [signed = ""] = await solanaSigner(buyer, { chain }).execute(
    more === "twice" ? [action, action] : [action],
    asked,
  );
  return VersionedTransaction.deserialize(Buffer.from(signed, "base64"));
}

/** Returns an instruction that names the buyer without asking for their signature. */
const withoutSigner = (one: TransactionInstruction) =>
  new TransactionInstruction({ ...one, keys: one.keys.map((key) => ({ ...key, isSigner: false })) });

/** Compiles instructions as the service does, or another way. */
function compile(
  instructions: TransactionInstruction[],
  { feePayer = payment.feePayer, legacy = false, tables = [] as AddressLookupTableAccount[] } = {},
): Uint8Array {
  const message = new TransactionMessage({
    payerKey: new PublicKey(feePayer),
    recentBlockhash: blockhash,
    instructions,
  });
  return new VersionedTransaction(
    legacy ? message.compileToLegacyMessage() : message.compileToV0Message(tables),
  ).serialize();
}

const ours = buildTransfer(payment);

test.each([
  ["of version 0", buildPayment(payment, { units: 1, unitPrice: 1n }, blockhash)],
  [
    "without a version",
    compile([...computeBudgetInstructions({ units: 1, unitPrice: 1n }), ...ours], { legacy: true }),
  ],
])("a key pair signs a payment %s in its own place, and leaves that of the fee payer empty", async (_name, bytes) => {
  const signed = await sign(bytes);
  const reference = VersionedTransaction.deserialize(bytes);
  reference.sign([buyer]);
  expect(signed.signatures).toEqual(reference.signatures);
});

describe("a wallet does not sign", () => {
  const owner = buyer.publicKey;
  const feePayer = new PublicKey(payment.feePayer);
  const mint = new PublicKey(payment.mint);
  const plain = createTransferInstruction(source, stranger, owner, 12_500_000n);
  const second = createTransferCheckedInstruction(source, mint, stranger, owner, 1n, 6);
  const bySpender = createTransferCheckedInstruction(source, mint, stranger, stranger, 1n, 6);
  const table = new AddressLookupTableAccount({
    key: stranger,
    state: { deactivationSlot: 2n ** 64n - 1n, lastExtendedSlot: 0, lastExtendedSlotStartIndex: 0, addresses: [mint] },
  });
  test.each<[string, Uint8Array, (object | "twice")?]>([
    ["another amount", compile(buildTransfer({ ...payment, amount: 12_500_001n }))],
    ["another token", compile(buildTransfer({ ...payment, mint: newAddress() }))],
    ["a payment of another account", compile(buildTransfer({ ...payment, payer: newAddress() }))],
    ["a transaction whose fee it would pay", compile(ours, { feePayer: payment.payer })],
    ["a second transfer", compile([...ours, second])],
    ["a transfer that does not name its token", compile([plain])],
    ["an approval beside the payment", compile([...ours, createApproveInstruction(source, stranger, owner, 1n)])],
    [
      "a transfer of SOL beside the payment",
      compile([...ours, SystemProgram.transfer({ fromPubkey: owner, toPubkey: stranger, lamports: 1 })]),
    ],
    ["another use of its tokens", compile([...ours, bySpender])],
    [
      "a transfer of another program",
      compile(
        ours.map((one) =>
          one.programId.equals(TOKEN_PROGRAM_ID)
            ? Object.assign(Object.create(one), one, { programId: stranger })
            : one,
        ),
      ),
    ],
    ["accounts of a lookup table", compile(ours, { tables: [table] })],
    ["a payment that does not need its signature", compile(ours.map(withoutSigner))],
    [
      "a transfer that it co-signs for others",
      compile([createTransferCheckedInstruction(source, mint, stranger, stranger, 12_500_000n, 6, [owner])]),
    ],
    ["a transaction of a later version", Uint8Array.from(compile(ours)).fill(129, 129, 130)],
    ["a transaction without a place for its signature", Uint8Array.from([1, ...compile(ours).subarray(65)])],
    ["two actions", compile(ours), "twice"],
    ["a transaction that is cut off", compile(ours).subarray(0, -1)],
    ["bytes behind a transaction", Buffer.concat([compile(ours), Buffer.alloc(1)])],
    ["a transaction of another cluster", compile(ours), { chain_id: "solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp" }],
    ["a plain message", compile(ours), { method: "solana_signMessage" }],
    ["no transaction", compile(ours), { params: [] }],
    ["parameters that are no list", compile(ours), { params: {} }],
    [
      "a transaction on a durable nonce, which would never expire",
      compile([SystemProgram.nonceAdvance({ noncePubkey: stranger, authorizedPubkey: feePayer }), ...ours]),
    ],
  ])("%s", async (_name, bytes, more) => {
    await expect(sign(bytes, more)).rejects.toThrow(UnsafeActionError);
  });
});

test("a wallet signs nothing for an option whose amount is on another cluster than its account", async () => {
  const unit = `caip19/solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp/token:${payment.mint}`;
  const asked = { ...option, amount: { ...option.amount, unit } };
  await expect(sign(compile(ours), {}, asked)).rejects.toThrow(UnsafeActionError);
});

test("a wallet signs nothing for an option whose amount is not readable", async () => {
  const asked = { ...option, amount: { ...option.amount, value: "x" } };
  await expect(sign(compile(ours), {}, asked)).rejects.toThrow(UnsafeActionError);
});

test("a signer is of one cluster, because a transaction names none", async () => {
  const signer = solanaSigner(buyer, { chain });
  expect(await signer.listAccounts()).toEqual([option.account]);
  const mainnet = "solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp";
  const transaction = Buffer.from(compile(ours)).toString("base64");
  const action = { chain_id: mainnet, method: "solana_signTransaction", params: [{ transaction }] };
  const amount = { ...option.amount, unit: `caip19/${mainnet}/token:${payment.mint}` };
  const asked = { ...option, account: `${mainnet}:${payment.payer}`, amount };
  await expect(signer.execute([action], asked)).rejects.toThrow(UnsafeActionError);
});

test("bytes of any kind are read as a transaction or refused, and nothing else happens", () => {
  const valid = compile(ours);
  const altered = fc
    .tuple(fc.nat(valid.length - 1), fc.nat(255))
    .map(([at, byte]) => Uint8Array.from(valid).fill(byte, at, at + 1));
  fc.assert(
    fc.property(fc.oneof(fc.uint8Array({ maxLength: 300 }), altered), (bytes) => {
      try {
        readSolanaTransaction(bytes);
      } catch (error) {
        expect(error).toBeInstanceOf(RangeError);
      }
    }),
  );
});

test("addresses are written as Solana writes them", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 40 }), (bytes) => {
      expect(encodeBase58(bytes)).toBe(base58.encode(bytes));
    }),
  );
});
