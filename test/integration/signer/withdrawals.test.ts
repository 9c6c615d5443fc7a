import { expect, test } from "vitest";
import { newKey } from "../../../local/networks-document.ts";
import { mintUsdc } from "../../../local/usdc.ts";
import { readEntries } from "../../../signer/audit/entries.ts";
import { verifyLog } from "../../../signer/audit/verify-log.ts";
import { withdrawCapital } from "../../../signer/withdraw-capital.ts";
import { makeOperators } from "../../support/approving-operators.ts";
import { fundBuyer, startChain, usdcBalance } from "../../support/evm-chain.ts";
import { startTestSigner } from "../../support/test-signer.ts";
import { startTokenKinds } from "../../support/token-kinds.ts";

const chain = await startChain();
const signing = await startTestSigner(chain);
const { deployment } = signing.deps;
const receiver = newKey().address.toLowerCase();
const wanted = { asset: chain.asset, amount: 2_000_000n, receiver, reference: "fees-2026-11" };

const { listed, approve } = makeOperators(deployment);
await signing.setLimits({ file: { operators: listed } });

const approveBy = (name: string, of = wanted) => {
  const [approval] = approve({ action: "withdraw capital", ...of }, [name]);
  if (!approval) throw new Error(`${name} is no operator`);
  return approval;
};

test("the operator's capital leaves the treasury when two operators have approved exactly this withdrawal", async () => {
  await mintUsdc(chain.client, chain.contracts.token, [chain.keys.treasury.address], 5_000_000n);
  const ask = (approvals: ReturnType<typeof approve>, change = {}) =>
    withdrawCapital(signing.deps, { ...wanted, ...change, approvals });
  const missing = { ok: false, reason: "approval_missing" };
  expect(await ask([])).toMatchObject(missing);
  expect(await ask([approveBy("alice"), approveBy("alice")])).toMatchObject(missing);
  expect(
    await ask([approveBy("alice"), { ...approveBy("bob"), signature: approveBy("alice").signature }]),
  ).toMatchObject(missing);
  expect(await ask([approveBy("alice"), approveBy("bob")], { amount: 2_000_001n })).toMatchObject(missing);
  expect(await ask([approveBy("alice"), approveBy("bob")], { receiver: newKey().address })).toMatchObject(missing);
  const nowhere = { ...wanted, receiver: "nowhere" };
  const approvals = approve({ action: "withdraw capital", ...nowhere });
  expect(await withdrawCapital(signing.deps, { ...nowhere, approvals })).toMatchObject({ reason: "invalid_request" });
  expect(signing.payouts()).toEqual([]);

  const signed = await ask([approveBy("alice"), approveBy("bob")]);
  if (!("data" in signed)) throw new Error("the withdrawal was not signed");
  expect(await ask([approveBy("alice"), approveBy("bob")])).toEqual(signed);
  const { to, data } = signed;
  const account = await fundBuyer(chain);
  await chain.client.setBalance({ address: account.address, value: 10n ** 18n });
  const hash = await chain.client.sendTransaction({ account, to, data });
  await chain.client.waitForTransactionReceipt({ hash });
  expect(await usdcBalance(chain, receiver as `0x${string}`)).toBe(2_000_000n);
  await expect(chain.client.estimateGas({ account, to, data })).rejects.toThrow();
  expect(signing.payouts()).toHaveLength(1);
  const entries = readEntries(signing.store, { after: undefined, limit: 100 });
  expect(entries.filter(({ action }) => action === "withdrawal.signed")).toMatchObject([
    { actor_kind: "operator", actor_id: "alice, bob", subject: wanted.reference },
  ]);
  expect(verifyLog(signing.store, []).findings).toEqual([]);
});

test("another receiver or a lower amount that operators approve for a reference is recorded before it is signed", async () => {
  const reference = "corrected";
  const first = { ...wanted, reference };
  const corrected = { ...first, receiver: newKey().address.toLowerCase(), amount: 1_000_000n };
  const ask = (of: typeof wanted) =>
    withdrawCapital(signing.deps, { ...of, approvals: approve({ action: "withdraw capital", ...of }) });
  for (const one of [first, corrected, corrected]) expect(await ask(one)).toMatchObject({ ok: true });
  expect(signing.payouts().slice(-2)).toMatchObject([
    { receiver: first.receiver, amount: "2000000", counted: "2000000" },
    { receiver: corrected.receiver, amount: "1000000", counted: "0" },
  ]);
  const entries = readEntries(signing.store, { after: undefined, limit: 100 });
  expect(entries.filter(({ subject }) => subject === reference).map(({ after }) => after)).toEqual([
    expect.stringContaining(first.receiver),
    expect.stringContaining(corrected.receiver),
  ]);
  // Whatever was approved last, a repetition of the first approval adds nothing.
  expect(await ask(first)).toMatchObject({ ok: true });
  expect(signing.payouts()).toHaveLength(3);
});

test("a pause that begins while the chain is read stops a withdrawal that was asked for before", async () => {
  const late = { ...wanted, reference: "late" };
  const checkChain = async (id: string) => {
    await signing.setLimits({ file: { operators: listed, paused: true } });
    return signing.deps.checkChain(id);
  };
  const before = signing.payouts().length;
  const approvals = approve({ action: "withdraw capital", ...late });
  const asked = withdrawCapital({ ...signing.deps, checkChain }, { ...late, approvals });
  expect(await asked).toMatchObject({ ok: false, reason: "paused" });
  expect(signing.payouts()).toHaveLength(before);
});

test("a withdrawal keeps to the limits", async () => {
  await signing.setLimits({ file: { operators: listed }, asset: { perPayout: "100" } });
  const large = { ...wanted, reference: "more", amount: 101n };
  const approvals = [approveBy("alice", large), approveBy("bob", large)];
  expect(await withdrawCapital(signing.deps, { ...large, approvals })).toMatchObject({ reason: "limit_payout" });
});

test("approvals of a withdrawal count for a day, and a withdrawal that was signed is signed again at any time", async () => {
  await signing.setLimits({ file: { operators: listed } });
  const fileOf = (reference: string) => {
    const of = { ...wanted, reference };
    return { ...of, approvals: approve({ action: "withdraw capital", ...of }) };
  };
  const [first, second] = [fileOf("signed"), fileOf("kept")];
  expect(await withdrawCapital(signing.deps, first)).toMatchObject({ ok: true });
  signing.clock.advance(25 * 3_600_000);
  expect(await withdrawCapital(signing.deps, first)).toMatchObject({ ok: true });
  expect(await withdrawCapital(signing.deps, second)).toMatchObject({
    reason: "approval_missing",
    detail: expect.stringContaining("the approvals of alice, bob are older than a day"),
  });
});

test("a reference that was used for one token of the Disburser is refused for another one, and not for USDC", async () => {
  const { chain: own, assets, change } = await startTokenKinds();
  const other = await startTestSigner(own, { change });
  await other.setLimits({ file: { operators: listed } });
  const ask = (asset: string) => {
    const of = { ...wanted, asset, reference: "several" };
    return withdrawCapital(other.deps, { ...of, approvals: approve({ action: "withdraw capital", ...of }) });
  };
  expect(await ask(assets.permit)).toMatchObject({ ok: true, to: expect.anything() });
  const refused = { ok: false, reason: "invalid_request", detail: expect.stringContaining(assets.permit) };
  expect(await ask(assets.push)).toMatchObject(refused);
  expect(other.payouts()).toHaveLength(1);
  // An EIP-3009 token has nonces of its own.
  expect(await ask(assets.usdc)).toMatchObject({ ok: true });
  expect(await ask(assets.permit)).toMatchObject({ ok: true });
  expect(other.payouts()).toHaveLength(2);
});
