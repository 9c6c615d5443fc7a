import { afterEach, expect, test } from "vitest";
import { deriveNonce, paymentKey } from "../../../chains/natural-key.ts";
import { readStatuses } from "../../../chains/solana/signature-statuses.ts";
import { broadcastBytes } from "../../../chains/solana/solana-broadcast.ts";
import { findTransferIndex } from "../../../chains/solana/treasury-movements.ts";
import {
  firstSignature,
  type ParsedTransaction,
  parseTransaction,
  withSignature,
} from "../../../chains/solana/wire-format.ts";
import { listAllDeposits } from "../../../db/queries/deposits.ts";
import type { SolanaKey } from "../../../local/solana-client.ts";
import { toClaim } from "../../../payments/payouts/request-payouts.ts";
import { parseNetworks } from "../../../runtime/networks/read-networks.ts";
import type { DepositClaim } from "../../../signer/protocol.ts";
import { startFaultProxy } from "../../support/fault-proxy.ts";
import { describeSolanaDeployment, makeSolanaMerchantFixture } from "../../support/solana-merchant-fixture.ts";
import { startSignerFor } from "../../support/test-signer.ts";
import { fundSolanaBuyer, makeSolanaKeys, startTestSolana } from "../../support/test-solana.ts";
import { waitFor } from "../../support/wait-for.ts";

// The signer believes the signed bytes of a buyer's transaction, and reads from its endpoint only whether it has succeeded.

const solana = await startTestSolana({ own: true });
const keys = await makeSolanaKeys(solana);
const proxy = await startFaultProxy({ target: solana.url });
const { SOLANA_TREASURY_KEY = "" } = keys.env;
const networks = parseNetworks(await describeSolanaDeployment(solana, keys, { rpcUrls: [proxy.url] }));
const { signer, store } = await startSignerFor(networks, { SOLANA_TREASURY_KEY });
const fixture = await makeSolanaMerchantFixture(solana, { keys, signer });
const { chain, deps, merchantId } = fixture;

afterEach(async () => {
  await solana.knobs.drop(0);
  await solana.knobs.hold(0);
  await solana.knobs.setSlotMs(solana.slotMs);
  await solana.knobs.resume();
});

/** Returns what a call adds to the calls of a method. */
async function countCalls(method: string, made: () => Promise<unknown>): Promise<number> {
  const before = proxy.calls[method] ?? 0;
  await made();
  return (proxy.calls[method] ?? 0) - before;
}

const listClaims = async (...paymentIds: string[]): Promise<DepositClaim[]> =>
  (await listAllDeposits(fixture.db, { after: "", limit: 1_000 }))
    .filter(({ payment_id }) => paymentIds.includes(payment_id))
    .map(toClaim);

function parse(bytes: Uint8Array): ParsedTransaction {
  const parsed = parseTransaction(bytes);
  if ("error" in parsed) throw new Error(parsed.error);
  return parsed;
}

/** Signs a new payment as the buyer and as the relayer, without sending it. */
async function signPayment(buyer: SolanaKey, cents: bigint): Promise<{ bytes: Uint8Array; claim: DepositClaim }> {
  const paymentId = await fixture.create(cents);
  const parsed = parse(Buffer.from((await fixture.sign(paymentId, buyer)).signed, "base64"));
  const lane = deps.solanaKeys.get(chain.chain)?.lanes.get(parsed.feePayer);
  if (!lane) throw new Error("the relayer has no key here");
  const bytes = withSignature(parsed, lane.address, await lane.sign(parsed.message));
  const nonce = deriveNonce(deps.deployment, paymentKey({ merchantId, paymentId }));
  const place = { txHash: firstSignature(bytes), logIndex: findTransferIndex(parsed, nonce) };
  const transaction = Buffer.from(bytes).toString("base64");
  return { bytes, claim: { asset: solana.asset, merchantId, paymentId, ...place, transaction } };
}

test("deposits are verified with one call for all of them", async () => {
  const paid: string[] = [];
  // On a slow machine, the payments are many short slots apart.
  await solana.knobs.setSlotMs(200);
  for (let count = 0; count < 6; count += 1) paid.push(await fixture.pay(await fundSolanaBuyer(solana), 100n));
  await solana.knobs.setSlotMs(solana.slotMs);
  const claims = await listClaims(...paid);
  const listed = await countCalls("getSignaturesForAddress", async () => {
    const read = await countCalls("getTransaction", async () =>
      expect(await signer.claimDeposits(claims)).toEqual(paid.map(() => ({ ok: true }))),
    );
    expect(read).toBe(0);
  });
  expect(listed).toBe(1);
});

test("a transaction that was signed and not sent, or that failed, is no deposit", async () => {
  const buyer = await fundSolanaBuyer(solana, 1_000_000n);
  const [made, failed, unsent] = [
    await signPayment(buyer, 100n),
    await signPayment(buyer, 99n),
    await signPayment(await fundSolanaBuyer(solana), 100n),
  ];
  for (const { bytes } of [made, failed]) {
    await broadcastBytes(chain, [bytes]);
    const hashes = [firstSignature(bytes)];
    const isConfirmed = async () => {
      const [status] = (await readStatuses(chain, hashes, { history: true })).statuses;
      return status !== undefined && status.depth !== "processed";
    };
    await waitFor(isConfirmed, { within: 10_000 });
  }
  expect(await signer.claimDeposits([made, failed, unsent].map(({ claim }) => claim))).toMatchObject([
    { ok: true },
    { ok: false, reason: "deposit_not_found" },
    { ok: false, reason: "deposit_not_found" },
  ]);
});

test("bytes that say more than the relayer has signed count for nothing, and the chain is read instead", async () => {
  const paid = [
    await fixture.pay(await fundSolanaBuyer(solana), 100n),
    await fixture.pay(await fundSolanaBuyer(solana), 100n),
  ];
  const raised = (await listClaims(...paid)).map((claim) => {
    const bytes = Buffer.from(claim.transaction ?? "", "base64");
    const amount = Buffer.alloc(8);
    amount.writeBigUInt64LE(1_000_000n);
    const at = bytes.indexOf(amount);
    bytes.writeBigUInt64LE(900_000_000n, at);
    return { ...claim, transaction: bytes.toString("base64") };
  });
  const read = await countCalls("getTransaction", async () =>
    expect(await signer.claimDeposits(raised)).toEqual([{ ok: true }, { ok: true }]),
  );
  expect(read).toBe(2);
  const recorded = store.prepare("select amount from deposit where payment_id in (?, ?)").all(...paid);
  expect(recorded.map(({ amount }) => BigInt(String(amount)))).toEqual([1_000_000n, 1_000_000n]);
});
