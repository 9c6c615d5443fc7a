import { expect, test } from "vitest";
import { deriveNonce, withdrawalKey } from "../../../chains/natural-key.ts";
import { readFinalBalance } from "../../../chains/solana/final-balances.ts";
import { listNonceAddresses, readNonces, readRent } from "../../../chains/solana/nonce-accounts.ts";
import { findMarker } from "../../../chains/solana/payout-markers.ts";
import { fundSol, newSolanaKey } from "../../../local/solana-client.ts";
import { fundTokens, tokenAccountOf } from "../../../local/spl-tokens.ts";
import { parseNetworks } from "../../../runtime/networks/read-networks.ts";
import { insertPayout } from "../../../signer/records.ts";
import { insertClosing } from "../../../signer/solana/transaction-records.ts";
import { withdrawCapital } from "../../../signer/withdraw-capital.ts";
import { makeOperators } from "../../support/approving-operators.ts";
import { describeSolanaDeployment, makeSolanaMerchantFixture } from "../../support/solana-merchant-fixture.ts";
import { startSignerFor } from "../../support/test-signer.ts";
import { makeSolanaKeys, startTestSolana, tokenBalance } from "../../support/test-solana.ts";

const solana = await startTestSolana();
const keys = await makeSolanaKeys(solana);
const { SOLANA_TREASURY_KEY = "" } = keys.env;
const signing = await startSignerFor(parseNetworks(await describeSolanaDeployment(solana, keys)), {
  SOLANA_TREASURY_KEY,
});
const { deps, store } = signing;
const operators = makeOperators(deps.deployment);
await signing.setLimits({ file: { operators: operators.listed } });
const { asset, client } = solana;
const receiver = newSolanaKey().address;
const wanted = { asset, amount: 2_000_000n, receiver, reference: "empty-1" };

/** Asks for a withdrawal that these operators have approved. */
const ask = (change: Partial<typeof wanted> = {}, by?: string[]) => {
  const file = { ...wanted, ...change };
  return withdrawCapital(deps, { ...file, approvals: operators.approve({ action: "withdraw capital", ...file }, by) });
};
const send = async (answer: Awaited<ReturnType<typeof ask>>) => {
  if (!answer.ok || !("transaction" in answer)) throw new Error(JSON.stringify(answer));
  return client.connection.sendRawTransaction(Buffer.from(answer.transaction, "base64"));
};
const records = () =>
  ["payout", "payout_transaction"].map((table) => store.prepare(`select * from ${table}`).all().length);
const fixture = await makeSolanaMerchantFixture(solana, { keys, signer: signing.signer });
await fundTokens(client, solana.mint, [keys.treasury.address], 5_000_000n);
// A stranger has sent the least possible to the receiver's token account, which does not exist yet.
await fundSol(client, [tokenAccountOf(solana.mint, receiver)], 890_880n);

test("a withdrawal on Solana that cannot be made is refused, and nothing is recorded", async () => {
  const failing = { ok: false, reason: "withdrawal_failing" };
  expect(await ask()).toMatchObject({ ...failing, detail: expect.stringContaining("send it SOL") });
  await fundSol(client, [keys.treasury.address], 5_000_000n);
  expect(await ask({}, ["alice"])).toMatchObject({ ok: false, reason: "approval_missing" });
  expect(await ask({ receiver: "0x12" })).toMatchObject({ ok: false, reason: "invalid_request" });
  expect(await ask({ amount: 2n ** 64n })).toMatchObject({ ok: false, reason: "invalid_request" });
  expect(await ask({ receiver: solana.mint.address })).toMatchObject({
    ...failing,
    detail: "the receiver is a token account or a mint, not a wallet",
  });
  expect(await ask({ amount: 5_000_001n })).toMatchObject({
    ...failing,
    detail: expect.stringContaining("would fail"),
  });
  expect(records()).toEqual([0, 0]);
});

test("a withdrawal on Solana that two operators approve is made once, although the signer was killed and the operators repeat it", async () => {
  const key = deps.treasuryKeys.get(solana.id);
  if (!key) throw new Error("the signer has no key");
  // The process ends between the record and the signature.
  const killed = { ...key, signMessage: () => Promise.reject(new Error("killed")) };
  deps.treasuryKeys = new Map([[solana.id, killed]]);
  await expect(ask()).rejects.toThrow("killed");
  expect(records()).toEqual([1, 1]);
  deps.treasuryKeys = new Map([[solana.id, key]]);
  const first = await ask();
  const repeated = await ask();
  expect(records()).toEqual([1, 1]);
  await send(first);
  await send(repeated).catch(() => undefined);
  const { chain } = fixture;
  await fixture.watchUntil(
    async () => (await readFinalBalance(chain, { asset, nonce: undefined })).balance === 3_000_000n,
  );
  expect(await tokenBalance(solana, receiver)).toBe(2_000_000n);
  expect(await ask()).toMatchObject({ ok: false, detail: "a withdrawal with this reference was made" });
  // The same reference with another amount is the same withdrawal.
  expect(await ask({ amount: 1_000_000n })).toMatchObject({ ok: false, reason: "withdrawal_failing" });
  expect(records()).toEqual([1, 1]);
  // Its marker stays: no worker has it closed.
  const nonce = deriveNonce(deps.deployment, withdrawalKey({ reference: wanted.reference }));
  const closing = await signing.signer.signMarkerClosing({
    chain: solana.id,
    feePayer: chain.lanes[0] ?? "",
    blockhash: newSolanaKey().address,
    markers: [{ address: findMarker(chain.treasury, nonce).address, lamports: await readRent(chain) }],
  });
  expect(closing).toMatchObject({ ok: false, reason: "marker_unknown" });
});

test("a reference that was used for one asset is refused for another on Solana, because it is paid once", async () => {
  const nonce = deriveNonce(deps.deployment, withdrawalKey({ reference: "one-asset" }));
  const payout = { nonce, kind: "withdrawal", treasury: keys.treasury.address, asset: `${solana.id}/token:other` };
  insertPayout(store, { ...payout, amount: 1n, counted: 1n, receiver, merchantId: null, paymentId: null }, deps.now());
  expect(await ask({ reference: "one-asset", amount: 1n })).toMatchObject({
    ok: false,
    reason: "withdrawal_failing",
    detail: "this reference was used for another asset: a reference is paid once on Solana, choose another one",
  });
  expect(records()).toEqual([2, 1]);
});

test("a withdrawal on Solana whose marker is closed while it is drafted is not signed again", async () => {
  await fundSol(client, [keys.treasury.address], 5_000_000n);
  const nonce = deriveNonce(deps.deployment, withdrawalKey({ reference: "closed" }));
  const marker = findMarker(keys.treasury.address, nonce).address;
  const before = records();
  // The signer's clock is read between the chain and the record.
  const now = () => {
    insertClosing(store, { chain: solana.id, marker, slot: 1 }, deps.now());
    return deps.now();
  };
  const file = { ...wanted, reference: "closed", amount: 1_000_000n };
  const approvals = operators.approve({ action: "withdraw capital", ...file });
  expect(await withdrawCapital({ ...deps, now }, { ...file, approvals })).toMatchObject({
    ok: false,
    detail: "a withdrawal with this reference was made",
  });
  expect(records()).toEqual(before);
});

test("no worker has a transaction of a withdrawal signed: only operators decide which of their approvals is used", async () => {
  const { chain } = fixture;
  await fundSol(client, [keys.treasury.address], 5_000_000n);
  expect(await ask({ reference: "corrected", amount: 1_500_000n })).toMatchObject({ ok: true });
  const [place] = await listNonceAddresses(chain, deps.deployment);
  const { nonces } = await readNonces(chain, [place?.address ?? ""], "confirmed");
  const memo = deriveNonce(deps.deployment, withdrawalKey({ reference: "corrected" }));
  const asked = await signing.signer.signPayoutTransaction({
    asset,
    feePayer: chain.lanes[0] ?? "",
    nonceAccount: place?.address ?? "",
    nonce: nonces[0] ?? "",
    markerRent: await readRent(chain),
    budget: { units: 200_000, unitPrice: 0n },
    payouts: [{ memo, destination: receiver, amount: 1_500_000n, makeAccount: false }],
  });
  expect(asked).toMatchObject({ ok: false, reason: "payout_unauthorized" });
});

test("two transactions that were signed for one withdrawal move money once", async () => {
  await fundSol(client, [keys.treasury.address], 5_000_000n);
  const change = { reference: "empty-2", amount: 1_000_000n };
  const first = await ask(change);
  // Operators approve the reference again, with another amount.
  const second = await ask({ ...change, amount: 500_000n });
  await send(first);
  const { chain } = fixture;
  await fixture.watchUntil(
    async () => (await readFinalBalance(chain, { asset, nonce: undefined })).balance === 2_000_000n,
  );
  await expect(send(second)).rejects.toThrow();
  expect(await tokenBalance(solana, receiver)).toBe(3_000_000n);
});
