// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the texts are code of other files.
import type { MutationGroup } from "./mutation.ts";

const forgedRefunds = ["test/integration/db/forged-refunds.test.ts"];
const refunds = ["test/integration/payments/payouts/refund.test.ts"];

/** Mutations of refunds: requests, the settlements they draw on, and adoption after a restore. */
export const refundMutations: readonly MutationGroup[] = [
  {
    file: "payments/payouts/refund-payment.ts",
    tests: refunds,
    mutations: [
      {
        name: "a partial refund is rounded up",
        find: "((payment.paid_amount ?? 0n) * value) / payment.value",
        replace: "((payment.paid_amount ?? 0n) * value + payment.value - 1n) / payment.value",
        tests: ["test/integration/payments/payouts/refund-rounding.test.ts"],
      },
      {
        name: "a payment is refunded repeatedly",
        find: "sum + amount, 0n",
        replace: "sum, 0n",
      },
      {
        name: "a refund can exceed the refundable amount",
        find: "amount <= 0n || amount > left",
        replace: "amount <= 0n",
      },
      {
        name: "a refund of zero or a negative amount is accepted",
        find: "amount <= 0n || amount > left",
        replace: "amount > left",
        tests: ["test/integration/payments/payouts/refund-rounding.test.ts"],
      },
      {
        name: "concurrent refunds of one payment do not see each other",
        find: "await lockPayments(db, [payment.id]);",
        replace: "",
      },
      {
        name: "an amount in another currency counts as one in the payment's currency",
        find: "if (asked !== canonicalUnit(payment.unit)) return undefined;",
        replace: "",
      },
      {
        name: "a direct payment to the merchant is refunded with the operator's money",
        find: "option !== undefined && !payment.direct;",
        replace: "option !== undefined;",
        tests: ["test/integration/payments/payouts/direct.test.ts"],
      },
      {
        name: "a refund of a test payment moves money",
        find: 'payment.mode === "live" && option !== undefined',
        replace: "option !== undefined",
      },
    ],
  },
  {
    file: "payments/payouts/raise-refund.ts",
    tests: ["test/integration/payments/payouts/restored-refunds.test.ts"],
    mutations: [
      {
        name: "a refund that has sent more counts with its former amount",
        find: "await setRefundAmount(db, { id, amount: movement.amount, owedAmount });",
        replace: "",
      },
      {
        name: "payouts that waited for what a lost refund has sent beyond its amount are not woken by its adoption",
        find: "await wakeSettlements(db, { merchantId, asset: drawn.asset });",
        replace: "",
        tests: ["test/integration/payments/payouts/restored-unrequested-refunds.test.ts"],
      },
      {
        name: "the merchant's balance pays for nothing that a lost refund has sent beyond its amount",
        find: "for (const one of await lockCovering(db, of)) {",
        replace: "for (const one of (await lockCovering(db, of)).slice(1_000)) {",
      },
      {
        name: "a payment is reported as paid out with what a raised refund has deducted from it",
        find: "if (taken > 0n) await insertDeductions(db, { ...from, amount: taken });",
        replace: "",
      },
      {
        name: "what no balance covers of a lost refund is no exception",
        find: "...(more > covered ? [",
        replace: "...(more < covered ? [",
      },
      {
        name: "another lost refund of the payment counts with what it was requested with",
        find: "made?.get(deriveNonce(deps.networks.deployment, keyOf(one)))?.amount ?? one.amount",
        replace: "one.amount + 0n * BigInt(made.size)",
      },
      {
        name: "a raise withdraws a refund that was sent too",
        find: "if (await findSentReason(deps, db, { asset: one.asset, key: keyOf(one) })) continue;",
        replace: "",
      },
      {
        name: "a raise draws what the payment has left as well",
        find: "if (beyond < 0n) return { excess, beyond: 0n };",
        replace: "",
      },
      {
        name: "refunds that exceed what a lost one has left are not withdrawn",
        find: "await moveToWithdrawn(db, { id: one.id, at: deps.now() });",
        replace: "",
      },
    ],
  },
  {
    file: "payments/payouts/paid-before-restore.ts",
    tests: ["test/integration/payments/payouts/restored-refunds.test.ts"],
    mutations: [
      {
        name: "a refund does not wait for the adoption of one that has sent more",
        find: "sent) < 0n) waiting.add(id);",
        replace: "sent) < 0n) waiting.delete(id);",
      },
    ],
  },
  {
    file: "payments/payouts/hold-refused.ts",
    tests: ["test/integration/payments/payouts/issuer-blocklist.test.ts"],
    mutations: [
      {
        name: "a refund to an account that the token's issuer blocks begins",
        find: '? "receiver_blocked" : undefined;',
        replace: "? undefined : undefined;",
      },
      {
        name: "a refund is sent to an account that is no longer supported",
        find: "[account])).size > 0)",
        replace: "[account])).size < 0)",
        tests: refunds,
      },
      {
        name: "a refund that was sent before a restore is held because its receiver is no longer served",
        find: "if (wasPaid(forgotten, refund)) return undefined;",
        replace: "",
        tests: ["test/integration/payments/payouts/restored-held-refunds.test.ts"],
      },
      {
        name: "a refund that was sent before a restore is held before it is final",
        find: "if (forgotten.has(id)) {",
        replace: "if (false) {",
        tests: ["test/integration/payments/payouts/restored-held-refunds.test.ts"],
      },
    ],
  },
  {
    file: "payments/payouts/refund-parts.ts",
    tests: ["test/integration/payments/payouts/refund-parts.test.ts"],
    mutations: [
      { name: "a payment has any number of refunds", find: "standing.length >= MAX_PARTS", replace: "false" },
      { name: "withdrawn refunds count", find: 'state !== "withdrawn"', replace: "true" },
      { name: "a part is as small as one minor unit", find: "amount < least", replace: "false" },
      { name: "the rest is no exception", find: "if (amount === left) return undefined;", replace: "" },
    ],
  },
  {
    file: "db/migrations/initial/refunds.sql",
    tests: ["test/integration/payments/payouts/refund-rounding.test.ts"],
    mutations: [
      {
        name: "the amount that a refund draws is rounded down",
        find: "p.owed_amount * new.amount + p.paid_amount - p.fee - 1",
        replace: "p.owed_amount * new.amount",
      },
      {
        name: "a refund draws as if no fee had been taken",
        find: "- p.fee - 1, p.paid_amount - p.fee))",
        replace: "- 1, p.paid_amount))",
        tests: ["test/integration/payments/payouts/cross-asset-payments.test.ts"],
      },
      {
        name: "the api's login withdraws the return of an exception, whose money no account of the ledger has then",
        find: "where id = of_refund and payment_id is not null and",
        replace: "where id = of_refund and",
        tests: ["test/integration/payments/payouts/withdrawn-returns.test.ts"],
      },
      {
        name: "a refund adds to the merchant's balance",
        find: "check (owed_amount > 0)",
        replace: "",
      },
      {
        name: "a temporary table decides who receives a refund and who pays it",
        find: "create function set_refund_place() returns trigger language plpgsql\n  set search_path = pg_catalog, public, pg_temp as",
        replace: "create function set_refund_place() returns trigger language plpgsql as",
        tests: forgedRefunds,
      },
      {
        name: "the api's login records a refund of a live payment as paid",
        find: "if new.state <> begins_as then",
        replace: "if begins_as = 'marked' and new.state <> begins_as then",
        tests: forgedRefunds,
      },
      {
        name: "a refund of test mode enters the queue of payouts",
        find: "case when p.mode = 'live' and not p.direct",
        replace: "case when not p.direct",
        tests: forgedRefunds,
      },
    ],
  },
  {
    file: "payments/payouts/lock-covering.ts",
    tests: ["test/integration/payments/payouts/refund-guards.test.ts"],
    mutations: [
      {
        name: "settlements that were reduced before they were locked do not cover an amount that others would",
        find: " && !isShort",
        replace: "",
      },
    ],
  },
  {
    file: "db/savepoint.ts",
    tests: ["test/integration/payments/payouts/refund-guards.test.ts"],
    mutations: [
      {
        name: "a transaction that chooses other settlements keeps those locked that do not suffice",
        find: "if (result === undefined) await sql`rollback to savepoint run`.execute(db);",
        replace: "",
      },
    ],
  },
  {
    file: "payments/payouts/deduct-from-settlement.ts",
    tests: refunds,
    mutations: [
      {
        name: "a refund consumes the whole of a larger settlement",
        find: "if (amount > atMost) {",
        replace: "if (false) {",
      },
    ],
  },
  {
    file: "payments/payouts/begin-refunds.ts",
    tests: refunds,
    mutations: [
      {
        name: "a lost refund waits for the inventory that has paid it",
        find: "const needsInventory = !wasPaid && (",
        replace: "const needsInventory = (",
        tests: ["test/integration/payments/payouts/restored-inventory.test.ts"],
      },
      {
        name: "a refund draws on the money of other merchants",
        find: "if (!(await debitMerchant(db, { merchantId, asset, amount }))) return",
        replace: "if (false) return",
      },
      {
        name: "a refund begins although its settlements do not cover it",
        find: 'return left > 0n ? "balance_short" : undefined;',
        replace: "return undefined;",
        tests: ["test/integration/payments/payouts/refund-guards.test.ts"],
      },
      {
        name: "a refund is drawn on money that a lost payout has paid to the merchant",
        find: "const keptOf = await readKeptOf(deps, db, { merchantId, asset: drawn.asset });",
        replace: "const keptOf = () => 0n;",
        tests: ["test/integration/payments/payouts/restored-draws.test.ts"],
      },
      {
        name: "a refund fails when its chosen settlements have begun meanwhile",
        find: "sumOf(locked) < amount && sumOf(chosen) >= amount",
        replace: "false",
        tests: ["test/integration/payments/payouts/refund-guards.test.ts"],
      },
      {
        name: "a refund that has begun begins again",
        find: "if (!(await moveToPaying(db, refund, at))) return",
        replace: "if (!(await moveToPaying(db, refund, at)) && false) return",
        tests: ["test/integration/payments/payouts/refund-guards.test.ts"],
      },
      {
        name: "a refund of converted money uses other merchants' money",
        find: "needsInventory && (await readInventory(db, asset)) < 0n",
        replace: "false",
        tests: ["test/integration/payments/payouts/refund-guards.test.ts"],
      },
      {
        name: "a refund that begins on money that came in another asset uses other merchants' money",
        find: "converted || chosen.some((one) => one.converted)",
        replace: "converted",
        tests: ["test/integration/payments/payouts/treasury-inventory.test.ts"],
      },
      {
        name: "a refund holds its settlements while it waits for the inventory",
        find: "if (needsInventory) await lockInventory(db, asset);\n  const why = await draw(db, refund, { merchantId, ...drawn, chosen, keptOf }, at);",
        replace:
          "const why = await draw(db, refund, { merchantId, ...drawn, chosen, keptOf }, at);\n  if (needsInventory) await lockInventory(db, asset);",
        tests: ["test/integration/payments/payouts/treasury-inventory.test.ts"],
      },
      {
        name: "a refund begins while the watcher is behind",
        find: "=> caughtUp.has(chainOf(asset)) && (isReread",
        replace: "=> (isReread",
        justification:
          "a lagging chain has no epoch, and without an epoch the transaction that begins the refund is rolled back",
        tests: ["test/integration/payments/payouts/refund.test.ts"],
      },
      {
        name: "a refund begins in another epoch than the one in which it was decided",
        find: "const passed = await deps.epoch.pass(db, epoch);",
        replace: "const passed = { ok: true as const, afterCommit: async () => undefined };",
        tests: ["test/integration/payments/payouts/restored-signatures.test.ts"],
      },
    ],
  },
  {
    file: "payments/payouts/adopt-payout.ts",
    tests: ["test/integration/payments/payouts/restored-payouts.test.ts"],
    mutations: [
      {
        name: "a payout of less than the payable amount clears all of it",
        find: "if (rest > 0n) await creditRest(deps, db, settlement, rest);",
        replace: "",
      },
      {
        name: "a payout of more than the payable amount is not deducted from the merchant's other settlements",
        find: "rest < 0n ? await fillSettlement(deps, db, settlement, -rest) : 0n",
        replace: "0n",
      },
      {
        name: "payments that an adopted payout has paid are reported as paid out with a later one",
        find: "else if (taken > 0n) await relinkPaid(",
        replace: "else if (false) await relinkPaid(",
      },
      {
        name: "the surplus of a payout over the payable amount is not booked",
        find: "await bookOverpaid(deps, db, { transfer, movement, amount });",
        replace: "",
      },
      {
        name: "a movement that is adopted as a payout stays an exception",
        find: "if (exception) await reverseException(",
        replace: "if (false) await reverseException(",
      },
    ],
  },
  {
    file: "payments/payouts/sent-before-restore.ts",
    tests: [
      "test/integration/payments/payouts/refund-withdrawals.test.ts",
      "test/integration/payments/accounting/restored-returns.test.ts",
    ],
    mutations: [
      {
        name: "a refund is withdrawn while a restored database reads the chain again",
        find: "if (await findUnreadEpoch(db, chain)) return",
        replace: "if (false) return",
      },
      {
        name: "a refund is withdrawn although the chain shows that it was sent",
        find: "(await isNonceUnclaimed(db, { chain, payer, nonce })) ?",
        replace: "nonce === undefined ?",
      },
      {
        name: "a stranger's deposit with the nonce of a refund keeps it from being withdrawn",
        find: "isNonceUnclaimed(db, { chain, payer, nonce })",
        replace: "isNonceUnclaimed(db, { chain, payer: undefined, nonce })",
      },
    ],
  },
  {
    file: "payments/payouts/withdraw-refunds.ts",
    tests: ["test/integration/payments/payouts/withdrawn-returns.test.ts"],
    mutations: [
      {
        name: "the money of a withdrawn return stays in transit",
        find: "      await insertGroups(db, [returnWithdrawnGroup({ ...refund, exceptionId: refund.exception_id }, movement)], at);\n",
        replace: "",
      },
      {
        name: "a return that the chain shows as sent is withdrawn",
        find: "    if (made) return refuse",
        replace: "    if (made && !movement) return refuse",
      },
      {
        name: "the withdrawal of a refund locks the queue of settlements after the audit log",
        find: "await wakeSettlements(db, queue);",
        replace: "void wakeSettlements;",
        tests: ["test/integration/payments/payouts/payout-locks.test.ts"],
      },
      {
        name: "a merchant's key withdraws a return",
        find: "findReportedRefund(db, args, { lock: true })",
        replace: "findReportedRefund(db, { refundId: args.refundId }, { lock: true })",
      },
    ],
  },
];
