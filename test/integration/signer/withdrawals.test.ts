import { generateKeyPairSync } from "node:crypto";
import { expect, test } from "vitest";
import { newKey } from "../../../local/networks-document.ts";
import { mintUsdc } from "../../../local/usdc.ts";
import { signText, writeStatement } from "../../../signer/statements.ts";
import { withdrawCapital } from "../../../signer/withdraw-capital.ts";
import { fundBuyer, startChain, usdcBalance } from "../../support/evm-chain.ts";
import { startTestSigner } from "../../support/test-signer.ts";

const chain = await startChain();
const signing = await startTestSigner(chain);
const { deployment } = signing.deps;
const receiver = newKey().address.toLowerCase();
const wanted = { asset: chain.asset, amount: 2_000_000n, receiver, reference: "fees-2026-11" };

const [alice, bob] = ["alice", "bob"].map((name) => ({ name, ...generateKeyPairSync("ed25519") }));
if (!alice || !bob) throw new Error("there are no operators");
const listed = [alice, bob].map(({ name, publicKey }) => {
  const { x = "" } = publicKey.export({ format: "jwk" });
  return { name, publicKey: Buffer.from(x, "base64url").toString("hex") };
});
await signing.setLimits({ file: { operators: listed } });

const approve = ({ name, privateKey }: NonNullable<typeof alice>, of = wanted) => {
  const text = writeStatement({ action: "withdraw capital", ...of }, { deployment, at: new Date() });
  return { text, signer: name, signature: signText(privateKey, text) };
};

test("the operator's capital leaves the treasury when two operators have approved exactly this withdrawal", async () => {
  await mintUsdc(chain.client, chain.contracts.token, [chain.keys.treasury.address], 5_000_000n);
  const ask = (approvals: ReturnType<typeof approve>[], change = {}) =>
    withdrawCapital(signing.deps, { ...wanted, ...change, approvals });
  const missing = { ok: false, reason: "approval_missing" };
  expect(await ask([])).toMatchObject(missing);
  expect(await ask([approve(alice), approve(alice)])).toMatchObject(missing);
  expect(await ask([approve(alice), { ...approve(bob), signature: approve(alice).signature }])).toMatchObject(missing);
  expect(await ask([approve(alice), approve(bob)], { amount: 2_000_001n })).toMatchObject(missing);
  expect(await ask([approve(alice), approve(bob)], { receiver: newKey().address })).toMatchObject(missing);

  const signed = await ask([approve(alice), approve(bob)]);
  if (!signed.ok) throw new Error(signed.detail);
  expect(await ask([approve(alice), approve(bob)])).toEqual(signed);
  const { to, data } = signed;
  const account = await fundBuyer(chain);
  await chain.client.setBalance({ address: account.address, value: 10n ** 18n });
  const hash = await chain.client.sendTransaction({ account, to, data });
  await chain.client.waitForTransactionReceipt({ hash });
  expect(await usdcBalance(chain, receiver as `0x${string}`)).toBe(2_000_000n);
  await expect(chain.client.estimateGas({ account, to, data })).rejects.toThrow();
  expect(signing.payouts()).toHaveLength(1);
});

test("a withdrawal keeps to the limits", async () => {
  await signing.setLimits({ file: { operators: listed }, asset: { perPayout: "100" } });
  const large = { ...wanted, reference: "more", amount: 101n };
  const approvals = [approve(alice, large), approve(bob, large)];
  expect(await withdrawCapital(signing.deps, { ...large, approvals })).toMatchObject({ reason: "limit_payout" });
});
