import { expect, test } from "vitest";
import { refundPayment } from "../../../../payments/payouts/refund-payment.ts";
import { adminIn } from "../../../support/admin.ts";
import { fundBuyer, networksFileFor, startChain } from "../../../support/evm-chain.ts";
import { makeMerchantFixture, unwrap } from "../../../support/merchant-fixture.ts";
import { testActor } from "../../../support/test-actor.ts";

const chain = await startChain();
const fixture = await makeMerchantFixture(chain);
const networksFile = await networksFileFor(chain);
const environment = { DATABASE_URL: fixture.databaseUrl, OPERATOR: "night watch" };
const admin = adminIn({ ...environment, NETWORKS_FILE: networksFile });

test("an operator lists refunds that have not begun and withdraws one, and the withdrawal is recorded", async () => {
  const paymentId = await fixture.pay(await fundBuyer(chain));
  const { refundId } = unwrap(await refundPayment(fixture.deps, { actor: testActor, paymentId, mode: "live" }));
  const listed = await admin("refunds", "list", "--merchant", fixture.merchantId, "--json");
  expect(JSON.parse(listed.stdout)).toMatchObject([{ refundId, paymentId, status: "pending", amount: "1000000" }]);
  for (let time = 0; time < 2; time += 1)
    expect(await admin("refunds", "withdraw", refundId)).toMatchObject({
      code: 0,
      stdout: expect.stringContaining(refundId),
    });
  expect(await admin("refunds", "list")).toMatchObject({ code: 0, stdout: "none\n" });
  const failed = await admin("refunds", "list", "--payment", paymentId, "--status", "failed", "--json");
  const shown = await admin("refunds", "show", refundId, "--json");
  for (const found of [JSON.parse(failed.stdout)[0], JSON.parse(shown.stdout)])
    expect(found).toMatchObject({ refundId, status: "failed", reason: "withdrawn", txId: null });
  const actions = await fixture.db.selectFrom("audit_entry").selectAll().where("subject", "=", refundId).execute();
  expect(actions.at(-1)).toMatchObject({ actor_id: "night watch", action: "refund.withdrawn" });
});

test("withdrawing a refund that has begun or does not exist exits with 1 and one sentence", async () => {
  const paymentId = await fixture.pay(await fundBuyer(chain));
  const { refundId } = unwrap(await refundPayment(fixture.deps, { actor: testActor, paymentId, mode: "live" }));
  expect(await fixture.refund(refundId)).toEqual(["begun"]);
  expect(await admin("refunds", "withdraw", refundId)).toMatchObject({
    code: 1,
    stderr: "the refund is processing\n",
  });
  expect(await admin("refunds", "withdraw", "rfnd_0")).toMatchObject({ code: 1, stderr: "no such refund\n" });
  const without = adminIn(environment);
  expect(await without("refunds", "withdraw", refundId)).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("NETWORKS_FILE"),
  });
  expect((await admin("refunds", "withdraw", "--help")).stdout).toContain("Refused once the refund has begun");
});
